/**
 * Joins the modules of src/ into the few files of dist/bundle/, which the executable and the package use. Node needs about a
 * third of a millisecond to find and open one module, and a start needs almost two hundred of them. With the
 * source maps, the log names the files of src/ in stack traces.
 *
 * The dependencies are not bundled. They stay in node_modules, so `npm audit`, overrides and scanners see them.
 * With --watch the bundle is made again whenever src/ changes.
 */
import { build, watch } from 'rolldown'

// The packages of a start that have CommonJS files. If a module imports one, Node first searches its text for the names of its exports,
// so the bundle calls `require` instead. A start is a fifth faster. For an import of `node:http`, Node 24 also loads its WebSocket client.
const required = {
  commander: "require('commander')",
  'lru-cache': "require('lru-cache')",
  koa: "require('koa')",
  '@koa/router': "require('@koa/router').default",
  pino: "require('pino')",
  'proxy-from-env': "require('proxy-from-env')",
  'node:http': "require('node:http')"
}
const MARK = '\0required:'

const requirePackages = {
  name: 'require-packages',
  resolveId: source => (source in required ? `${MARK}${source}` : undefined),
  load: id => {
    const name = id.startsWith(MARK) ? id.slice(MARK.length) : undefined
    return name && { code: `module.exports = ${required[name]}`, moduleType: 'js' }
  }
}

const options = {
  input: { main: 'src/cli/main.ts', index: 'src/index.ts', testing: 'src/testing/index.ts' },
  platform: 'node',
  plugins: [requirePackages],
  external: (source, importer) => /^[^./\0]/.test(source) && (!(source in required) || importer?.startsWith(MARK)),
  // Some modules of the group `server` are also imported dynamically, for commands that do not need them at first.
  checks: { ineffectiveDynamicImport: false },
  // Imports name the compiled files.
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  // dist/bundle/ is as far below the root as the folder of each module, because some modules find files of the package
  // relative to their URL. Modules that are imported dynamically stay in separate files.
  output: {
    dir: 'dist/bundle',
    format: 'esm',
    chunkFileNames: '[name]-[hash].js',
    // Each group contains everything that its modules import, so that a start reads few files. `--help`, `init`
    // and `secret` read only the first group.
    codeSplitting: {
      groups: [
        {
          name: 'settings',
          test: /src.(config.load|provider.metadata|cli.terminal.terminal|base.(package|colours))\.ts$/,
          priority: 2
        },
        { name: 'start', test: /src.cli.commands.start\.ts$/, priority: 1 },
        { name: 'server', test: /src.(server.start|index)\.ts$/ }
      ]
    },
    // Node parses less text without comments, and keeps it in half of the memory if all characters are ASCII.
    comments: false,
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: false, asciiOnly: true } },
    sourcemap: true,
    sourcemapExcludeSources: true
  }
}

if (process.argv.includes('--watch')) watch(options)
else await build(options)
