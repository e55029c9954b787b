import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { findingsIn } from './dependencies.ts'

const found = (text: string) => findingsIn('packages/operator/src/any.ts', text)

/** An interface of dependencies with so many fields. */
const listing = (fields: number, head = 'interface Dependencies') =>
  `${head} {\n${Array.from({ length: fields }, (_, i) => `  /** One. */ readonly f${i}: Clock\n`).join('')}}\n`

describe('the check of dependencies', () => {
  test('counts the fields of an interface or a type that lists dependencies, and of no other', () => {
    const text = `${listing(3)}${listing(7, 'export type OperatorParts =')}${listing(9, 'interface Options')}`
    assert.deepEqual(found(text).asked, [
      { name: 'Dependencies', line: 1, fields: 3 },
      { name: 'OperatorParts', line: 6, fields: 7 },
    ])
  })

  test('counts what a constructor takes beside them', () => {
    const text = `${listing(6)}class Search {
      constructor(deps: Dependencies, kind: Kind) {}
    }
    class Clockwork { constructor(clock: Clock, name: string) {} }`
    assert.deepEqual(
      found(text).asked.map(({ name, fields }) => [name, fields]),
      [
        ['Dependencies', 6],
        ['Search', 7],
      ],
    )
  })

  test('counts members that are picked; takes what is inherited or joined for too much', () => {
    const [extended] = found('interface Dependencies extends Many { readonly one: Clock }').asked
    const [joined] = found('type Dependencies = Many & Others').asked
    const [picked] = found("type Dependencies = Pick<Many, 'one' | 'two'>").asked
    assert.deepEqual([extended?.fields, joined?.fields], [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY])
    assert.equal(picked?.fields, 2)
  })

  test('finds members that others fill in', () => {
    const text = `class Gauge {
      beforeReading: () => void = () => undefined
      podAges: PodAges | undefined
      onChange: ((x: X) => void) | undefined
    }
    interface Entry { done?: () => void }`
    assert.deepEqual(
      found(text).slots.map(({ name, line }) => [name, line]),
      [
        ['beforeReading', 2],
        ['podAges', 3],
        ['onChange', 4],
        ['Entry', 6],
      ],
    )
  })

  test('lets be what is given once, what nobody else can set, and what is no function', () => {
    const text = `class Gauge {
      readonly due: Listeners<string> = new Listeners()
      #stop: (() => void) | undefined
      isLate = false
      atMs: number | undefined
    }
    interface Pass { readonly find: () => Promise<void>; run(signal: AbortSignal): void }`
    assert.deepEqual(found(text).slots, [])
  })

  test('finds files that reach for everything', () => {
    const text = `import type { Clock } from '@tenon/runtime'
    import type { Assembly } from '../composition/parts.ts'`
    assert.deepEqual(found(text).reaching, [2])
  })
})
