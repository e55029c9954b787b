import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assert as check, integer, property, string } from 'fast-check'
import { parseSpec, specOf } from './specs.ts'

function problemOf(text: string): string {
  const parsed = parseSpec(text)
  return parsed.kind === 'malformed' ? parsed.problem : 'none'
}

test('CAS-9 each fault of a value of --nodes has its own message', () => {
  assert.deepEqual(['0:5:x', '3:2:x', '1:5', '1:5:', 'a:5:x', '1:b:x', ''].map(problemOf), [
    '--nodes=0:5:x: the minimum size is 0; it must be at least 1',
    '--nodes=3:2:x: the maximum size 2 is below the minimum size 3',
    '--nodes=1:5 has a wrong form: write it as MIN:MAX:NAME, for example --nodes=1:5:workers',
    '--nodes=1:5:: the name is blank; write it as MIN:MAX:NAME, for example --nodes=1:5:workers',
    '--nodes=a:5:x: the minimum "a" is no integer; write it as MIN:MAX:NAME, for example --nodes=1:5:workers',
    '--nodes=1:b:x: the maximum "b" is no integer; write it as MIN:MAX:NAME, for example --nodes=1:5:workers',
    '--nodes= has a wrong form: write it as MIN:MAX:NAME, for example --nodes=1:5:workers',
  ])
})

test('CAS-10 a name may contain colons', () => {
  assert.deepEqual(parseSpec('1:3:a:b'), { kind: 'spec', min: 1, max: 3, name: 'a:b' })
})

test('CAS-8 CAS-10 any name and any limits that are in order are taken as they are', () => {
  check(
    property(
      integer({ min: 1, max: 1e6 }),
      integer({ min: 0, max: 1e6 }),
      string({ minLength: 1 }),
      (min, more, name) => {
        assert.deepEqual(parseSpec(`${min}:${min + more}:${name}`), {
          kind: 'spec',
          min,
          max: min + more,
          name,
        })
      },
    ),
  )
})

test('CAS-11 a malformed value that does not say its group concerns those that none before it is for', () => {
  const before = [parseSpec('1:5'), parseSpec('1:3:workers')]
  assert.equal(specOf(before, ['workers']).kind, 'malformed')
  const after = [parseSpec('1:3:workers'), parseSpec('1:5')]
  assert.deepEqual(specOf(after, ['workers']), {
    kind: 'found',
    spec: { kind: 'spec', min: 1, max: 3, name: 'workers' },
  })
  assert.equal(specOf(after, ['other']).kind, 'malformed')
})

test('CAS-11 a malformed value with a name concerns only the group of this name', () => {
  const specs = [parseSpec('0:5:batch'), parseSpec('1:3:workers')]
  assert.equal(specOf(specs, ['batch']).kind, 'malformed')
  assert.equal(specOf(specs, ['workers']).kind, 'found')
  assert.equal(specOf(specs, ['other']).kind, 'none')
})
