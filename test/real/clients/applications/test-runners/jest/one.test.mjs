import { expect, test } from '@jest/globals'
import { scenario } from '../scenario.mjs'

test('the application', () => scenario(expect), 60_000)
