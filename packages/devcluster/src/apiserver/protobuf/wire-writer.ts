/** Writes protobuf messages, including nested ones, into one buffer. */
export class WireWriter {
  #bytes: Buffer = Buffer.allocUnsafe(64 * 1024)
  #at = 0

  /** The written bytes. */
  finish(): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(0, this.#at))
  }

  bool(number: number, value: boolean): void {
    this.#varint(number << 3)
    this.#varint(value ? 1 : 0)
  }

  text(number: number, value: string): void {
    const length = Buffer.byteLength(value)
    this.#varint((number << 3) | 2)
    this.#varint(length)
    this.#reserve(length)
    this.#at += this.#bytes.write(value, this.#at)
  }

  /** A nested message; `write` writes its fields with this writer. */
  message(number: number, write: () => void): void {
    this.#varint((number << 3) | 2)
    const start = this.#at
    write()
    const end = this.#at
    // The length comes first but is known last, so the content is moved.
    this.#varint(end - start)
    const length = new Uint8Array(this.#bytes.subarray(end, this.#at))
    this.#bytes.copyWithin(start + length.length, start, end)
    this.#bytes.set(length, start)
  }

  /** An integer of at most 31 bits. */
  #varint(value: number): void {
    this.#reserve(5)
    let rest = value
    for (; rest > 0x7f; rest >>>= 7) this.#bytes[this.#at++] = (rest & 0x7f) | 0x80
    this.#bytes[this.#at++] = rest
  }

  #reserve(length: number): void {
    if (this.#at + length <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(2 * this.#bytes.length + length)
    this.#bytes.copy(larger, 0, 0, this.#at)
    this.#bytes = larger
  }
}
