import { testSituations } from './messages.js'

testSituations('combinations')
