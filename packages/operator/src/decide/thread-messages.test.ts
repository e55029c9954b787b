import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { InstanceType } from '@tenon/api'
import { partsOf, PieceSize, Reassembly, SentTypes } from './thread-messages.ts'

const aType = (name: string): InstanceType => ({
  name,
  requirements: [],
  offerings: [],
  capacity: {},
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
})

/** Tells a thread about the types; says what it heard of and what it forgot. */
function tell(sent: SentTypes, ...types: readonly InstanceType[]) {
  const told: string[] = []
  const forgotten: number[] = []
  for (const message of sent.messages(types, new PieceSize())) {
    if (message.kind === 'types') told.push(...message.types.map(([, { name }]) => name))
    if (message.kind === 'forgetTypes') forgotten.push(...message.ids)
  }
  return { told, forgotten }
}

describe('instance types on their way to a thread', () => {
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(aType) as [
    InstanceType,
    InstanceType,
    InstanceType,
    InstanceType,
  ]

  test('a type is told once, and again only as another object', () => {
    const sent = new SentTypes(10)
    assert.deepEqual(tell(sent, a, b, a).told, ['a', 'b'])
    assert.deepEqual(tell(sent, b, c).told, ['c'])
    assert.deepEqual(tell(sent, a, { ...b }).told, ['b'])
  })

  test('of types beyond the bound, those unused for longest are forgotten, and told again when needed', () => {
    const sent = new SentTypes(2)
    tell(sent, a, b)
    tell(sent, a)
    assert.deepEqual(tell(sent, c), { told: ['c'], forgotten: [sent.idOf(b)] })
    assert.deepEqual(tell(sent, b), { told: ['b'], forgotten: [sent.idOf(a)] })
  })

  test('types of the problem itself are never forgotten, however many there are', () => {
    const sent = new SentTypes(1)
    assert.deepEqual(tell(sent, a, b, c), { told: ['a', 'b', 'c'], forgotten: [] })
    assert.deepEqual(tell(sent, a, b, c), { told: [], forgotten: [] })
    assert.deepEqual(tell(sent, b, c, d), { told: ['d'], forgotten: [sent.idOf(a)] })
  })

  test('a type is known only once its message was taken', () => {
    const sent = new SentTypes(10)
    sent.messages([a], new PieceSize()).return()
    assert.deepEqual(tell(sent, a).told, ['a'])
  })
})

describe('records in parts', () => {
  const record = {
    list: Array.from({ length: 3000 }, (_, i) => ({ i })),
    map: new Map(Array.from({ length: 100 }, (_, i) => [i, `value ${i}`])),
    none: [],
    noEntries: new Map(),
    columns: new Int32Array([1, 2, 3]),
    settings: { names: new Set(['x']), limit: Number.POSITIVE_INFINITY },
    absent: undefined,
  }

  test('a record put together from copies of its parts is equal', () => {
    const assembly = new Reassembly()
    for (const part of partsOf(record, new PieceSize())) assembly.add(structuredClone(part))
    assert.deepEqual(assembly.record(), record)
  })

  test('pieces get smaller while they take long and larger while they take little', () => {
    const size = new PieceSize()
    const start = size.items
    size.took(100)
    assert.ok(size.items < start)
    for (let piece = 0; piece < 50; piece++) size.took(100)
    assert.equal(size.items, 1)
    for (let piece = 0; piece < 50; piece++) size.took(0)
    const lengths = [...partsOf({ list: record.list }, size)].map((part) =>
      part.kind === 'list' ? part.items.length : 0,
    )
    assert.deepEqual(lengths, [0, 1024, 1024, 952])
  })
})
