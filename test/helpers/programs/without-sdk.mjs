// Loaded with `--import` into a program under test, which then finds no SDK of OpenTelemetry.
import { register } from 'node:module'

register('./without-sdk-hook.mjs', import.meta.url)
