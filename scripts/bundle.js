/**
 * Joins the modules of src/ into the few files of dist/bundle/, which the executable and the package use. Node needs about a
 * third of a millisecond to find and open one module, and a start needs almost two hundred of them. The source maps make
 * stack traces name the files of src/.
 *
 * The dependencies are not bundled. They stay in node_modules, so `npm audit`, overrides and scanners see them.
 * With --watch the bundle is made again whenever src/ changes.
 */
import { build, watch } from 'rolldown'

const options = {
  input: { main: 'src/cli/main.ts', index: 'src/index.ts', testing: 'src/testing/index.ts' },
  platform: 'node',
  external: /^[^./]/,
  // Imports name the compiled files.
  resolve: { extensionAlias: { '.js': ['.ts'] } },
  // dist/bundle/ is as far below the root as the folder of each module, because some modules find files of the package
  // relative to their URL. Modules that are imported dynamically stay in separate files.
  output: {
    dir: 'dist/bundle',
    format: 'esm',
    chunkFileNames: '[name]-[hash].js',
    sourcemap: true,
    sourcemapExcludeSources: true
  }
}

if (process.argv.includes('--watch')) watch(options)
else await build(options)
