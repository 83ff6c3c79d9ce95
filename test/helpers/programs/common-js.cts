import type { Config } from 'platform-auth-server' with { 'resolution-mode': 'import' }

async function start() {
  const { loadConfig, startServer } = await import('platform-auth-server')
  const { config }: { readonly config: Config } = await loadConfig()
  return startServer(config)
}
void start()
