import { expect, test } from 'vitest'
import { scenario } from '../scenario.mjs'

test('the application', () => scenario(expect), 60_000)
