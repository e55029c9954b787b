/** A decoded wire value: a number, a fixed-width float, or bytes. */
export type WireValue = bigint | number | Uint8Array

/**
 * Reads the fields of one protobuf message in order.
 * @throws RangeError for malformed input.
 */
export class WireReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** The next field; `undefined` at the end. */
  next(): { readonly number: number; readonly value: WireValue } | undefined {
    if (this.#at >= this.#bytes.length) return undefined
    const tag = Number(this.#varint())
    return { number: tag >>> 3, value: this.#value(tag & 7) }
  }

  #value(wireType: number): WireValue {
    switch (wireType) {
      case 0:
        return this.#varint()
      case 1:
        return viewOf(this.#take(8)).getFloat64(0, true)
      case 2:
        return this.#take(Number(this.#varint()))
      case 5:
        return viewOf(this.#take(4)).getFloat32(0, true)
      default:
        throw new RangeError(`unknown wire type ${wireType}`)
    }
  }

  #varint(): bigint {
    let result = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) throw new RangeError('the message ends in a number')
      result |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return result
    }
    throw new RangeError('a number is too long')
  }

  #take(length: number): Uint8Array {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new RangeError('the message ends in a field')
    const part = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return part
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
