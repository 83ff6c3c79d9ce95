import { createSingleMode } from '#src/login/mode.js'
import { modeContract } from './contract.js'

const scopes = ['data:read', 'account:read', 'account:write']
const single = {
  name: 'single',
  scopes,
  grants: 1,
  tokenFields: ['token'],
  names: [
    [{ name: 'Ada Lovelace', given_name: 'A', family_name: 'L' }, 'Ada Lovelace'],
    [{ name: '', given_name: 'Ada', family_name: 'Lovelace' }, 'Ada Lovelace'],
    [{ firstName: 'Ada', lastName: 'Lovelace', preferred_username: 'ada' }, 'Ada Lovelace']
  ],
  create: (parts, more = []) => createSingleMode({ scopes: [...scopes, ...more] }, parts)
} satisfies Parameters<typeof modeContract>[0]

modeContract(single)
