import test from 'ava'
import { ownTexts } from '#src/pages/texts/index.js'
import { PLACEHOLDERS, type Texts } from '#src/pages/texts/texts.js'
import { readText } from '../helpers/repository.js'

const languages = Object.keys(ownTexts)

/** The texts of a language by key, such as `notFound.title`. */
function textsOf(language: string): Map<string, string> {
  const groups = Object.entries<Record<string, string>>(ownTexts[language] as Texts)
  return new Map(
    groups.flatMap(([group, members]) =>
      Object.entries(members).map(([name, text]) => [`${group}.${name}`, text] as const)
    )
  )
}

const keys = [...textsOf('en').keys()]

test('the pages have texts in English, German, French, Japanese and Chinese, and English comes first', t => {
  t.deepEqual(languages, ['en', 'de', 'fr', 'ja', 'zh'])
  t.true(keys.length > 60)
})

for (const language of languages) {
  test(`the language ${language} has every text, and each text has exactly its placeholders`, t => {
    const texts = textsOf(language)
    t.deepEqual([...texts.keys()], keys)
    for (const [key, text] of texts) {
      t.is(text, text.trim(), key)
      t.true(text.length > 1, key)
      const placeholders = [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, name]) => name)
      t.deepEqual(placeholders.toSorted(), (PLACEHOLDERS[key] ?? []).toSorted(), key)
    }
  })
}

test('docs/texts.en.json has the English texts, so that translators can begin with it', t => {
  t.deepEqual(JSON.parse(readText('docs/texts.en.json')), ownTexts.en, 'run "npm run reference"')
})

test('no language except English contains an English text', t => {
  const english = textsOf('en')
  for (const language of languages.slice(1)) {
    for (const [key, text] of textsOf(language)) t.not(text, english.get(key), `${language} ${key}`)
  }
})

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
  for (const language of languages) t.notRegex(ownTexts[language]?.sessionTooLarge.happened ?? '', /cookie/i, language)
})

test('the typography follows the language', t => {
  for (const [key, text] of textsOf('zh')) t.notRegex(text, /\p{Script=Han}[,:;?!]|[,:;?!]\p{Script=Han}/u, key)
  for (const [key, text] of textsOf('fr')) {
    t.notRegex(text, /[^\u00a0][:;?!](?!\w)/, `${key} has a no-break space before the mark`)
    t.notRegex(text, /'/, `${key} has the apostrophe of French typography`)
  }
})
