import test from 'ava'
import { builtInTexts } from '#src/pages/texts.js'

const languages = Object.keys(builtInTexts)

/** The texts of a language by key, such as `notFound.title`. */
function textsOf(language: string): Map<string, string> {
  const groups = Object.entries(builtInTexts[language] as Record<string, Record<string, string>>)
  return new Map(
    groups.flatMap(([group, members]) =>
      Object.entries(members).map(([name, text]) => [`${group}.${name}`, text] as const)
    )
  )
}

function placeholdersOf(text = ''): string[] {
  return (text.match(/\{\{.*?\}\}/g) ?? []).sort()
}

const english = textsOf('en')

test('the pages have texts in English, German, French, Japanese and Chinese, and English comes first', t => {
  t.deepEqual(languages, ['en', 'de', 'fr', 'ja', 'zh'])
  t.true(english.size > 60)
})

for (const language of languages) {
  test(`the language ${language} has exactly the keys and the placeholders of English, and its own texts`, t => {
    const texts = textsOf(language)
    t.deepEqual([...texts.keys()], [...english.keys()])
    for (const [key, text] of texts) {
      t.is(text, text.trim(), key)
      t.true(text.length > 1, key)
      t.deepEqual(placeholdersOf(text), placeholdersOf(english.get(key)), key)
      if (language !== 'en') t.not(text, english.get(key), key)
    }
  })
}

test('each sentence ends in the full stop of its language, and titles have none', t => {
  const stop = { en: '.', de: '.', fr: '.', ja: '。', zh: '。' } as Readonly<Record<string, string>>
  for (const language of languages) {
    for (const [key, text] of textsOf(language)) {
      if (/\.(happened|next)$/.test(key)) t.true(text.endsWith(stop[language] as string), `${language} ${key}`)
      if (key.endsWith('.title')) t.false(text.endsWith(stop[language] as string), `${language} ${key}`)
    }
  }
})

test('in every language, a session that is too large is not explained by the size of a cookie, because it may be in Redis', t => {
  for (const language of languages)
    t.notRegex(builtInTexts[language]?.sessionTooLarge.happened ?? '', /cookie/i, language)
})

test('the typography follows the language', t => {
  for (const [key, text] of textsOf('zh')) t.notRegex(text, /\p{Script=Han}[,:;?!]|[,:;?!]\p{Script=Han}/u, key)
  for (const [key, text] of textsOf('fr')) {
    t.notRegex(text, /[^\u00a0][:;?!](?!\w)/, `${key} has a no-break space before the mark`)
    t.notRegex(text, /'/, `${key} has the apostrophe of French typography`)
  }
})
