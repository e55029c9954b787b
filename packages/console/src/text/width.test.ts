import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assert as check, integer, property, string } from 'fast-check'
import { shownLines, shownText } from './shown.ts'
import { clipped, elided, padded, widthOf } from './width.ts'

test('CON-10 no text of an object gives orders to the terminal', () => {
  assert.equal(shownText('a\u001b[31mb\u009bc\nd\u202ee\u2028'), 'a\\x1b[31mb\\x9bc\\nd\\u202ee\\u2028')
  assert.equal(shownText('web-0'), 'web-0')
  assert.equal(shownLines('a\u202eb\n\tc\u0007'), 'a\\u202eb\n\tc\\x07')
  check(
    property(string({ unit: 'binary' }), (text) => {
      assert.doesNotMatch(shownText(text), /[\p{Cc}\p{Bidi_Control}]/u)
    }),
  )
})

test('CON-10 names with wide letters keep columns', () => {
  assert.equal(widthOf('節点'), 4)
  assert.equal(widthOf('🦊'), 2)
  assert.equal(padded('節点', 6), '節点  ')
  assert.equal(padded('1.5', 5, 'right'), '  1.5')
  check(
    property(string({ unit: 'grapheme' }), integer({ min: 1, max: 40 }), (text, width) => {
      const shown = shownText(text)
      assert.ok(widthOf(elided(shown, width)) <= width)
      assert.ok(widthOf(clipped(shown, width)) <= width)
      if (widthOf(shown) <= width) assert.equal(elided(shown, width), shown)
    }),
  )
})

test('a long name loses its middle and keeps the random suffix', () => {
  assert.equal(elided('general-purpose-large-7xk2p', 16), 'genera…rge-7xk2p')
  assert.equal(clipped('It stays: pods have no other place', 12), 'It stays: p…')
  assert.equal(elided('ab', 1), '…')
  assert.equal(elided('ab', 0), '')
})
