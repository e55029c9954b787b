/** Lines of the journal's files: JSON objects that end with a checksum of what is before it. */
import { crc32 } from 'node:zlib'

const sealPattern = /,"crc32":"([0-9a-f]{8})"\}$/

/** @param line a JSON object. */
export function sealed(line: string): string {
  const body = line.slice(0, -1)
  return `${body},"crc32":"${checksum(body)}"}`
}

/** @returns the line without its checksum; undefined when it is not the one that was written. */
export function unsealed(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder().decode(bytes)
  const seal = sealPattern.exec(text)
  if (seal === null) return undefined
  const body = text.slice(0, seal.index)
  // Of a text with a broken character the checksum is another one.
  return checksum(body) === seal[1] ? `${body}}` : undefined
}

function checksum(text: string): string {
  return crc32(text).toString(16).padStart(8, '0')
}
