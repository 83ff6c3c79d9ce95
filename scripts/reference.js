// Generates the tables of settings in README.md and docs/configuration.md, the schema for editors, and the sample of all
// settings from the settings table.
// It reads the table from dist/, so run this after a build.
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { fullSample } from '../dist/config/sample.js'
import { everydaySettings, jsonSchema, withReference } from '../dist/config/schema.js'

const root = new URL('../', import.meta.url)

function writeTable(path, keys) {
  const file = new URL(path, root)
  writeFileSync(file, withReference(readFileSync(file, 'utf8'), keys))
}

writeTable('README.md', everydaySettings)
writeTable('docs/configuration.md')
writeFileSync(new URL('config/schema.json', root), `${JSON.stringify(jsonSchema(), undefined, 2)}\n`)
writeFileSync(new URL('config/full.yaml', root), fullSample())
// Helm can read only the files of the chart.
copyFileSync(new URL('deploy/monitoring/alerts.yaml', root), new URL('deploy/helm/files/alerts.yaml', root))
