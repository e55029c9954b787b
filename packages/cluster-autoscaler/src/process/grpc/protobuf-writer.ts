export class ProtobufWriter {
  readonly #chunks: Uint8Array[] = []

  finish(): Uint8Array {
    return Buffer.concat(this.#chunks)
  }

  /** An integer as `int32` or `int64`. */
  integer(field: number, value: number | bigint): void {
    this.#varint(BigInt(field << 3))
    this.#varint(BigInt.asUintN(64, BigInt(value)))
  }

  double(field: number, value: number): void {
    this.#varint(BigInt((field << 3) | 1))
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    this.#chunks.push(bytes)
  }

  text(field: number, value: string): void {
    this.bytes(field, Buffer.from(value))
  }

  /** Also for nested messages. */
  bytes(field: number, value: Uint8Array): void {
    this.#varint(BigInt((field << 3) | 2))
    this.#varint(BigInt(value.length))
    this.#chunks.push(value)
  }

  #varint(value: bigint): void {
    const bytes: number[] = []
    let rest = value
    for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
    bytes.push(Number(rest))
    this.#chunks.push(Uint8Array.from(bytes))
  }
}
