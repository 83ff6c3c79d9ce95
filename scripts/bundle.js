/**
 * Joins the compiled modules of dist/ into the few files of dist/bundle/, which the executable and the package use. Node needs
 * about a third of a millisecond to find and open one module, and a start needs almost two hundred of them.
 *
 * The dependencies are not bundled. They stay in node_modules, so `npm audit`, overrides and scanners see them.
 * With --watch the bundle is made again whenever dist/ changes.
 */
import { build, watch } from 'rolldown'

const options = {
  input: { main: 'dist/cli/main.js', 'compile-cache': 'dist/cli/compile-cache.js', index: 'dist/index.js' },
  platform: 'node',
  external: /^[^./]/,
  // dist/bundle/ is as far below the root as the folder of each module, because some modules find files of the package by
  // their own address. What a command loads only when it needs it stays in files of its own.
  output: { dir: 'dist/bundle', format: 'esm', chunkFileNames: '[name]-[hash].js' }
}

if (process.argv.includes('--watch')) watch(options)
else await build(options)
