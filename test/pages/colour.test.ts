import test from 'ava'
import fc from 'fast-check'
import { accentStyle, contrast, parseColour } from '#src/pages/colour.js'
import { pageStyle } from '#src/pages/index.js'

const LEAST = 4.5

const contrastOf = (one: string, other: string) => contrast(parseColour(one), parseColour(other))

// The colours behind the text, first those of light mode and then those of dark mode.
const backgrounds = [...pageStyle.matchAll(/--(?:page|card): (#\w+);/g)].map(([, colour]) => colour)

function shadesOf(accent: string) {
  const style = accentStyle(accent)
  const [light = '', dark = ''] = [...style.matchAll(/--accent: (#\w{6})/g)].map(([, colour]) => colour)
  const [lightHover = '', darkHover = ''] = [...style.matchAll(/--accent-hover: (#\w{6})/g)].map(([, colour]) => colour)
  const buttons = [...style.matchAll(/background: (#\w{6}); color: (#\w{6})/g)]
  const [button = '', buttonHover = ''] = buttons.map(([, colour]) => colour)
  return { light, lightHover, dark, darkHover, button, buttonHover, onButton: buttons[0]?.[2] ?? '' }
}

test('the contrast of black and white is 21, and that of equal colours is 1', t => {
  t.is(contrastOf('#000', '#ffffff'), 21)
  t.is(contrastOf('#1d5fc2', '#1d5fc2'), 1)
  // The value of https://webaim.org/resources/contrastchecker/ for these two colours.
  t.is(contrastOf('#767676', '#ffffff').toFixed(2), '4.54')
})

test('every accent colour is readable as text on the backgrounds of both modes, and so is the text on its buttons', t => {
  t.is(backgrounds.length, 4)
  const colour = fc.integer({ min: 0, max: 0xffffff }).map(value => `#${value.toString(16).padStart(6, '0')}`)
  fc.assert(
    fc.property(colour, accent => {
      const shades = shadesOf(accent)
      const pairs = [
        ...[shades.light, shades.lightHover].flatMap(shade => backgrounds.slice(0, 2).map(back => [shade, back])),
        ...[shades.dark, shades.darkHover].flatMap(shade => backgrounds.slice(2).map(back => [shade, back])),
        ...[shades.button, shades.buttonHover].map(back => [shades.onButton, back])
      ] as [string, string][]
      return shades.button === accent && pairs.every(([one, other]) => contrastOf(one, other) >= LEAST)
    })
  )
  t.pass()
})

test('an accent colour that is readable already is used unchanged', t => {
  t.is(shadesOf('#1d5fc2').light, '#1d5fc2')
  t.is(shadesOf('#8db7ff').dark, '#8db7ff')
  t.is(shadesOf('#15c').button, '#1155cc')
  t.is(shadesOf('#1d5fc2').onButton, '#ffffff')
  t.is(shadesOf('#ffd43b').onButton, '#000000')
})
