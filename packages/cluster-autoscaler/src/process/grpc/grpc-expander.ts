/** The expander `grpc`: a server of the user chooses (cluster-autoscaler.md 4.5). */
import type { Logger } from '@tenon/runtime'
import type { Expander } from '../../scale-up/expanders.ts'
import type { ExpansionOption } from '../../scale-up/option.ts'
import { encodeObject } from './encode-object.ts'
import { ProtobufWriter } from './protobuf-writer.ts'

export const bestOptionsPath = '/grpcplugin.Expander/BestOptions'

export interface GrpcExpanderDependencies {
  /** Calls the method with a message and returns the response. */
  readonly call: (message: Uint8Array, signal: AbortSignal) => Promise<Uint8Array>
  readonly logger: Logger
}

/**
 * Keeps the options that the server chose. If it does not respond or names only unknown groups, keeps all; if it names
 * none, keeps none.
 */
export function grpcExpander({ call, logger }: GrpcExpanderDependencies): Expander {
  return async (options, signal) => {
    let chosen: readonly string[]
    try {
      chosen = groupIdsOf(await call(requestOf(options), signal))
    } catch (error) {
      signal.throwIfAborted()
      logger.warn('the grpc expander did not answer, nothing is left out', { error })
      return options
    }
    if (chosen.length === 0) return []
    const kept = options.filter(({ groupId }) => chosen.includes(groupId))
    if (kept.length > 0) return kept
    logger.warn('the grpc expander named other groups only, nothing is left out', { chosen })
    return options
  }
}

/** Fields: `options` 1 with `nodeGroupId` 1, `nodeCount` 2, `debug` 3, `podBytes` 5; `nodeBytesMap` 3. */
function requestOf(options: readonly ExpansionOption[]): Uint8Array {
  const writer = new ProtobufWriter()
  for (const { groupId, nodeCount, pods } of options) {
    const option = new ProtobufWriter()
    option.text(1, groupId)
    option.integer(2, nodeCount)
    option.text(3, `${nodeCount} nodes of ${groupId} for ${pods.length} pods`)
    for (const pod of pods) option.bytes(5, encodeObject('core.v1.Pod', pod))
    writer.bytes(1, option.finish())
  }
  for (const { groupId, template } of options) {
    const entry = new ProtobufWriter()
    entry.text(1, groupId)
    entry.bytes(2, encodeObject('core.v1.Node', template.node))
    writer.bytes(3, entry.finish())
  }
  return writer.finish()
}

/**
 * `nodeGroupId` (field 1) of each of the `options` (field 1).
 * @throws RangeError for another message.
 */
function groupIdsOf(message: Uint8Array): readonly string[] {
  return partsOf(message, 1).flatMap((option) =>
    partsOf(option, 1).map((text) => new TextDecoder().decode(text)),
  )
}

/** The bytes of every occurrence of a field. */
function partsOf(message: Uint8Array, field: number): readonly Uint8Array[] {
  const found: Uint8Array[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      const byte = message[at++]
      if (byte === undefined || factor > 2 ** 63) throw new RangeError('a number of the answer does not end')
      value += (byte & 0x7f) * factor
      if (byte < 0x80) return value
    }
  }
  while (at < message.length) {
    const tag = varint()
    const [number, wireType] = [Math.floor(tag / 8), tag % 8]
    if (wireType === 0) varint()
    else if (wireType === 1 || wireType === 5) at += wireType === 1 ? 8 : 4
    else if (wireType === 2) {
      const end = varint() + at
      if (end > message.length) throw new RangeError('the answer ends in a field')
      if (number === field) found.push(message.subarray(at, end))
      at = end
    } else throw new RangeError(`the answer has a field of type ${wireType}`)
  }
  return found
}
