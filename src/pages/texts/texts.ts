import type { en } from './en.js'

/** All texts of the pages in one language, by group and key. */
export type Texts = typeof en

/** The placeholders that each text may contain, by its key. The other texts have none. */
export const PLACEHOLDERS: Readonly<Record<string, readonly string[] | undefined>> = {
  'details.error': ['code', 'description'],
  'details.errorCode': ['code'],
  'details.request': ['id'],
  'busy.next': ['when'],
  'loginLoop.secureCookieOnHttp': ['address'],
  'loginLoop.otherHost': ['host', 'address'],
  'loginLoop.otherName': ['startedAt', 'host', 'address']
}
