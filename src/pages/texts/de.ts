import type { Texts } from './texts.js'

/** The texts of the pages in German. */
export const de: Texts = {
  actions: {
    signIn: 'Anmelden',
    signInAgain: 'Erneut anmelden',
    home: 'Zur Startseite'
  },
  details: {
    intro: 'Wenn Sie um Hilfe bitten, geben Sie bitte Folgendes an:',
    error: 'Fehler {{code}}: {{description}}',
    errorCode: 'Fehler {{code}}',
    request: 'Anfrage {{id}}'
  },
  notSignedIn: {
    title: 'Sie sind nicht angemeldet',
    happened: 'Diese Seite ist nur für angemeldete Personen. Sie haben keine Sitzung, oder Ihre Sitzung ist beendet.',
    next: 'Melden Sie sich an, um fortzufahren.'
  },
  accountNotAllowed: {
    title: 'Ihr Konto ist hier nicht zugelassen',
    happened:
      'Die Anmeldung hat funktioniert, aber diese Anwendung lässt nur Konten zu, die auf ihrer Liste stehen. Ihr Konto steht nicht auf der Liste, oder seine E-Mail-Adresse wurde nicht bestätigt.',
    next: 'Wenn Sie ein anderes Konto haben, melden Sie sich damit an. Bitten Sie andernfalls die Betreiber dieser Anwendung um Zugang.'
  },
  sessionTooLarge: {
    title: 'Ihre Sitzung ist zu groß',
    happened:
      'Die Anmeldung hat funktioniert, aber die Daten Ihres Kontos sind größer, als eine Sitzung sein darf. Diese Anwendung kann Ihre Sitzung deshalb nicht speichern.',
    next: 'Ein neuer Versuch hilft nicht. Teilen Sie den Betreibern dieser Anwendung mit, dass sie weniger Zugriffsrechte anfordern muss.'
  },
  loginNotCompleted: {
    title: 'Diese Anmeldung konnte nicht abgeschlossen werden',
    happened:
      'Der Link, der von der Anmeldeseite hierher zurückführt, ist zu alt, wurde schon benutzt oder gehört zu einem anderen Browser oder einem privaten Fenster.',
    next: 'Melden Sie sich erneut an. Wenn Sie jedes Mal wieder hier landen, erlauben Sie Cookies für diese Website und schließen Sie deren ältere Tabs.'
  },
  accessNotGranted: {
    title: 'Der Zugriff wurde nicht gewährt',
    happened: 'Die Anmeldeseite hat gemeldet, dass der Zugriff verweigert oder die Anmeldung abgebrochen wurde.',
    next: 'Wenn Sie das nicht wollten, melden Sie sich erneut an und erlauben Sie den Zugriff. Wenn Sie nicht um Erlaubnis gefragt wurden, hat Ihr Konto möglicherweise keinen Zugang zu dieser Anwendung. Wenden Sie sich dann an die Betreiber.'
  },
  otherSite: {
    title: 'Diese Anfrage kam von einer anderen Website',
    happened:
      'Eine andere Website hat versucht, Ihre Sitzung hier zu benutzen. Die Anfrage wurde abgelehnt, und nichts wurde geändert.',
    next: 'Wenn Sie das selbst tun wollten, öffnen Sie die Anwendung direkt und versuchen Sie es dort noch einmal.'
  },
  notFound: {
    title: 'Hier gibt es keine Seite',
    happened: 'Unter dieser Adresse wurde nichts gefunden.',
    next: 'Prüfen Sie die Adresse auf Tippfehler, oder gehen Sie zur Startseite.'
  },
  methodNotAllowed: {
    title: 'Diese Adresse lässt sich so nicht verwenden',
    happened:
      'Ein Formular oder ein Programm hat Daten an diese Adresse gesendet. Die Adresse nimmt aber keine Daten an.',
    next: 'Beginnen Sie noch einmal auf der Startseite.'
  },
  requestTooLarge: {
    title: 'Die Anfrage ist zu groß',
    happened: 'Die Anfrage war größer, als dieser Server erlaubt.',
    next: 'Beginnen Sie noch einmal auf der Startseite. Wenn dieser Fehler wieder erscheint, löschen Sie die Cookies dieser Website.'
  },
  invalidRequest: {
    title: 'Das hat nicht funktioniert',
    happened: 'Der Server konnte diese Anfrage nicht verstehen.',
    next: 'Prüfen Sie die Adresse auf Tippfehler, oder beginnen Sie noch einmal auf der Startseite.'
  },
  serverError: {
    title: 'Bei uns ist etwas schiefgelaufen',
    happened: 'Auf dem Server ist ein unerwarteter Fehler aufgetreten. Sie haben ihn nicht verursacht.',
    next: 'Versuchen Sie es noch einmal. Wenn der Fehler bestehen bleibt, informieren Sie die Betreiber dieser Anwendung.'
  },
  providerError: {
    title: 'Der Anmeldedienst hat ein Problem',
    happened:
      'Der Dienst, der Ihr Konto verwaltet, hat einen Fehler gemeldet oder Daten gesendet, die dieser Server nicht verwenden kann.',
    next: 'Melden Sie sich erneut an. Wenn es wieder fehlschlägt, informieren Sie die Betreiber dieser Anwendung.'
  },
  providerUnavailable: {
    title: 'Bitte versuchen Sie es gleich noch einmal',
    happened: 'Der Anmeldedienst ist im Moment nicht verfügbar. Falls Sie angemeldet waren, sind Sie es weiterhin.',
    next: 'Warten Sie einige Sekunden, und versuchen Sie es dann noch einmal.'
  },
  providerSlow: {
    title: 'Der Anmeldedienst braucht zu lange',
    happened:
      'Der Dienst, der Ihr Konto verwaltet, hat nicht rechtzeitig geantwortet. Falls Sie angemeldet waren, sind Sie es weiterhin.',
    next: 'Warten Sie einen Moment, und melden Sie sich dann erneut an.'
  },
  providerUnreachable: {
    title: 'Der Anmeldedienst ist nicht erreichbar',
    happened:
      'Dieser Server konnte keine Verbindung zu dem Dienst herstellen, der Ihr Konto verwaltet. Falls Sie angemeldet waren, sind Sie es weiterhin.',
    next: 'Warten Sie einen Moment, und melden Sie sich dann erneut an. Wenn der Fehler bestehen bleibt, informieren Sie die Betreiber dieser Anwendung.'
  },
  busy: {
    title: 'Der Dienst ist ausgelastet',
    happened: 'Der Anmeldedienst kann im Moment nicht antworten. Falls Sie angemeldet waren, sind Sie es weiterhin.',
    next: 'Diese Seite versucht es {{when}} von selbst noch einmal. Sie müssen nichts tun.'
  },
  loginLoop: {
    title: 'Sie haben sich angemeldet, aber der Browser hat die Anmeldung nicht behalten',
    happened:
      'Die Anmeldung hat funktioniert, aber Ihr Browser hat ein Cookie nicht zurückgesendet. Diese Website braucht es, damit Sie angemeldet bleiben. Die nächste Seite würde Sie deshalb wieder auffordern, sich anzumelden.',
    reason: 'Der wahrscheinliche Grund',
    reasons: 'Die wahrscheinlichen Gründe',
    secureCookieOnHttp:
      'Möglicherweise haben Sie diese Website über unverschlüsseltes http geöffnet. Browser speichern dieses Cookie aber nur bei https. Öffnen Sie stattdessen {{address}}.',
    otherHost:
      'Möglicherweise haben Sie diese Website nicht unter dem Hostnamen {{host}} geöffnet, zu dem die Anmeldung zurückführt. Browser speichern Cookies für jeden Hostnamen getrennt. Öffnen Sie stattdessen {{address}}.',
    otherName:
      'Sie haben {{startedAt}} geöffnet, aber die Anmeldung führt zu {{host}} zurück. Beide Namen bezeichnen diesen Rechner, aber Browser speichern Cookies für jeden Namen getrennt. Öffnen Sie stattdessen {{address}}.',
    cookiesBlocked:
      'Der Browser blockiert Cookies für diese Website. Erlauben Sie sie in den Einstellungen, und prüfen Sie Ihre Datenschutz-Erweiterungen. Wenn diese Seite innerhalb einer anderen Website angezeigt wird, blockiert der Browser ihre Cookies oft.',
    cookieTooLarge:
      'Die Daten Ihres Kontos sind größer als die Cookies, die der Browser oder ein Proxy vor diesem Server annimmt. Teilen Sie den Betreibern dieser Anwendung mit, dass sie weniger Zugriffsrechte anfordern muss.'
  }
}
