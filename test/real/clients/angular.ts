// Angular: the recipe of docs/pages/bundlers.md with the demo, in Chromium.
import type { Program } from './lab.js'
import { documented, documentedVersion, followRecipe, signInAt, statusOf } from './recipes.js'

const version = documentedVersion('@angular/build').replace(/.*@/, '')
const script = 'node_modules/@angular/cli/bin/ng.js'

const configuration = {
  version: 1,
  projects: {
    application: {
      projectType: 'application',
      root: '',
      architect: {
        build: {
          builder: '@angular/build:application',
          options: {
            browser: 'src/main.ts',
            index: 'src/index.html',
            tsConfig: 'tsconfig.json',
            outputPath: 'dist',
            outputHashing: 'all'
          }
        },
        serve: {
          builder: '@angular/build:dev-server',
          options: { buildTarget: 'application:build', proxyConfig: 'src/proxy.conf.json' }
        }
      }
    }
  }
}

const compilerOptions = {
  target: 'es2022',
  module: 'preserve',
  moduleResolution: 'bundler',
  experimentalDecorators: true,
  strict: true
}

const files = {
  'package.json': '{}',
  'angular.json': JSON.stringify(configuration),
  'tsconfig.json': JSON.stringify({ compilerOptions, files: ['src/main.ts'] }),
  'src/index.html': '<!doctype html><base href="/"><title>An application</title><app-root></app-root>',
  'src/main.ts': `import { Component, provideZonelessChangeDetection, signal } from '@angular/core'
import { bootstrapApplication } from '@angular/platform-browser'
import { apiFetch } from 'platform-auth-server/client'

@Component({ selector: 'app-root', template: '<p id="greeting">{{ greeting() }}</p>' })
class Application {
  readonly greeting = signal('')

  constructor() {
    void this.greet()
  }

  private async greet(): Promise<void> {
    const response = await apiFetch('/api/auth/profile')
    const { name } = (await response.json()) as { name: string }
    this.greeting.set(\`Hello, \${name}\`)
  }
}

await bootstrapApplication(Application, { providers: [provideZonelessChangeDetection()] })
`
}

export const angular: Program = {
  name: 'angular',
  packages: [
    ...['cli', 'build'].map(name => `@angular/${name}@${version}`),
    ...['common', 'compiler', 'compiler-cli', 'core', 'platform-browser'].map(name => `@angular/${name}@21.2.26`),
    ...['rxjs@7.8.2', 'tslib@2.8.1', 'typescript@5.9.3']
  ],
  async run(lab) {
    const recipe = await followRecipe(lab, script, { ...files, 'src/proxy.conf.json': documented('"secure"') })
    const site = await recipe.develop(['serve', '--port', recipe.port])
    const page = await lab.newPage()
    await signInAt(lab, page, `${site}/models?id=7`, 'after the login, the user is back on the page of Angular')
    lab.check('a rule of the API proxy works', await statusOf(page, '/api/hubs'), 200)

    await recipe.build()
    const url = await recipe.serve('wwwroot: ./dist/browser')
    await signInAt(lab, page, `${url}/models?id=7`, 'the built pages work at this server')
  }
}
