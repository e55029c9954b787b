/** The static drift hash, version `v3` (api.md 9). */
import { parseDuration } from '../duration.ts'
import type { Taint } from '../objects.ts'
import type { NodePool } from './types.ts'

/** Version of the hash, stored beside it: hashes of different versions are not compared. */
export const nodePoolHashVersion = 'v3'

const mask = 0xffff_ffff_ffff_ffffn
const prime = 1099511628211n
const offset = 14695981039346656037n

function fnv(bytes: Uint8Array): bigint {
  let hash = offset
  for (const byte of bytes) hash = ((hash * prime) & mask) ^ BigInt(byte)
  return hash
}

function littleEndian(...values: readonly bigint[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(8 * values.length))
  for (const [i, value] of values.entries()) view.setBigUint64(8 * i, BigInt.asUintN(64, value), true)
  return new Uint8Array(view.buffer)
}

const encoder = new TextEncoder()

/** Exported for the test vectors of api.md. */
export function hashString(text: string): bigint {
  return fnv(encoder.encode(text))
}

function hashInteger(value: bigint): bigint {
  return fnv(littleEndian(value))
}

function pair(a: bigint, b: bigint): bigint {
  return fnv(littleEndian(a, b))
}

function finish(a: bigint): bigint {
  return fnv(littleEndian(a))
}

/** Hash of a map; independent of its order. */
export function hashStringMap(map: Readonly<Record<string, string>>): bigint {
  let hash = 0n
  for (const [key, value] of Object.entries(map)) hash ^= pair(hashString(key), hashString(value))
  return finish(hash)
}

/** A field of a struct; undefined if it is zero and omitted. */
type Field = readonly [name: string, value: bigint | undefined]

/** Hash of a struct with the type name `name`. */
export function hashRecord(name: string, fields: readonly Field[]): bigint {
  let hash = hashString(name)
  for (const [field, value] of fields) {
    if (value !== undefined) hash = finish(hash ^ pair(hashString(field), value))
  }
  return hash
}

function textField(text: string | undefined): bigint | undefined {
  return text === undefined || text === '' ? undefined : hashString(text)
}

function hashTaint(taint: Taint): bigint {
  return hashRecord('Taint', [
    ['Key', textField(taint.key)],
    ['Value', textField(taint.value)],
    ['Effect', textField(taint.effect)],
    [
      'TimeAdded',
      taint.timeAdded === undefined ? undefined : hashRecord('Time', [['Time', hashTime(taint.timeAdded)]]),
    ],
  ])
}

function hashTime(text: string): bigint {
  const ms = Date.parse(text)
  const view = new DataView(new ArrayBuffer(15))
  view.setUint8(0, 1)
  const secondsBeforeUnix = 62_135_596_800n
  view.setBigInt64(1, BigInt(Math.floor(ms / 1000)) + secondsBeforeUnix)
  view.setInt32(9, (ms % 1000) * 1_000_000)
  view.setInt16(13, 0)
  return fnv(new Uint8Array(view.buffer))
}

function hashTaints(taints: readonly Taint[] | undefined): bigint | undefined {
  return taints?.reduce((hash, taint) => hash ^ hashTaint(taint), 0n)
}

function nanoseconds(text: string): bigint {
  return BigInt(Math.round((parseDuration(text) ?? 0) * 1e6))
}

function gracePeriod(text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  const ns = nanoseconds(text)
  return hashRecord('Duration', [['Duration', ns === 0n ? undefined : hashInteger(ns)]])
}

function expireAfter(text: string | undefined): bigint | undefined {
  if (text === undefined || text === 'Never') return undefined
  return hashRecord('NillableDuration', [['Duration', hashInteger(nanoseconds(text))]])
}

/** The value of annotation `karpenter.sh/nodepool-hash`: a decimal 64-bit number. */
export function nodePoolHash(pool: Pick<NodePool, 'spec'>): string {
  const { metadata, spec } = pool.spec.template
  const isMetadataZero = metadata?.labels === undefined && metadata?.annotations === undefined
  const meta = hashRecord('ObjectMeta', [
    ['Labels', metadata?.labels && hashStringMap(metadata.labels)],
    ['Annotations', metadata?.annotations && hashStringMap(metadata.annotations)],
  ])
  const ref = spec.nodeClassRef
  const template = hashRecord('NodeClaimTemplateSpec', [
    ['Taints', hashTaints(spec.taints)],
    ['StartupTaints', hashTaints(spec.startupTaints)],
    [
      'NodeClassRef',
      hashRecord('NodeClassReference', [
        ['Kind', textField(ref.kind)],
        ['Name', textField(ref.name)],
        ['Group', textField(ref.group)],
      ]),
    ],
    ['TerminationGracePeriod', gracePeriod(spec.terminationGracePeriod)],
    ['ExpireAfter', expireAfter(spec.expireAfter)],
  ])
  return hashRecord('NodeClaimTemplate', [
    ['ObjectMeta', isMetadataZero ? undefined : meta],
    ['Spec', template],
  ]).toString()
}
