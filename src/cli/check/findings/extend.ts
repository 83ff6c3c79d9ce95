import type { Config } from '../../../config/settings.js'
import { loadExtension } from '../../../http/routes/extension.js'
import { messageOf } from '../../errors.js'
import { type Finding, findingsFor } from '../finding.js'

const { ok, failed } = findingsFor('extend')

/** Imports the module of the setting `extend`, as the server does when it starts. Does not call the exported function. */
export async function extend({ extend: path }: Config): Promise<Finding[]> {
  if (path === undefined) return []
  try {
    await loadExtension(path)
    return [ok(`${path} exports a function that can add routes.`)]
  } catch (error) {
    return [failed(`${messageOf(error)}.`, 'Correct the module. The server cannot start with it.')]
  }
}
