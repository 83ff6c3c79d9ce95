// Loaded with `--import` into a program under test. Prints the line `imported` for each package that the program imports or requires.
import Module, { register } from 'node:module'
import { print } from './print-imports-hook.mjs'

const { require } = Module.prototype
Module.prototype.require = function (name) {
  print(name)
  return require.call(this, name)
}
register('./print-imports-hook.mjs', import.meta.url)
