import { createApp, requireTokens, startServer } from 'platform-auth-server'
import { apiFetch } from 'platform-auth-server/client'
import manifest from 'platform-auth-server/package.json' with { type: 'json' }
import schema from 'platform-auth-server/schema.json' with { type: 'json' }
import { startTestServer } from 'platform-auth-server/testing'

const server = await startTestServer()
const ada = await server.signIn('Ada Lovelace')
const { name } = await (await ada.fetch('/api/auth/profile')).json()
await server.close()
const kinds = [createApp, requireTokens, startServer, apiFetch, manifest, schema].map(item => typeof item)
process.stdout.write(`${[name, ...new Set(kinds)].join(' ')}\n`)
