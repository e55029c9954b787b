/**
 * The frames of a port-forward over a WebSocket with subprotocol `v4.channel.k8s.io`. Every message is binary; its
 * first byte is a channel. The forwarded port has channel 0 for data and 1 for errors. The first message on each is the
 * port number (two bytes, little-endian); all others are data.
 */

export const portForwardProtocol = 'v4.channel.k8s.io'

const dataChannel = 0
const errorChannel = 1

/** The content of a message. */
export type Frame =
  | { readonly kind: 'confirmation' }
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  | { readonly kind: 'error'; readonly text: string }
  | { readonly kind: 'violation'; readonly text: string }

/** Reads the messages of one connection in order. */
export class FrameReader {
  readonly #port: number
  readonly #confirmed = new Set<number>()

  constructor(port: number) {
    this.#port = port
  }

  /** Whether both channels have sent the port number. */
  get isConfirmed(): boolean {
    return this.#confirmed.size === 2
  }

  read(message: Uint8Array): Frame {
    const [channel] = message
    if (channel !== dataChannel && channel !== errorChannel)
      return { kind: 'violation', text: `a message on channel ${channel ?? 'none'}` }
    const bytes = message.subarray(1)
    if (!this.#confirmed.has(channel)) return this.#confirmation(channel, bytes)
    return channel === dataChannel
      ? { kind: 'data', bytes }
      : { kind: 'error', text: Buffer.from(bytes).toString('utf8').trim() }
  }

  #confirmation(channel: number, bytes: Uint8Array): Frame {
    const [low, high] = bytes
    const port = bytes.length === 2 && low !== undefined && high !== undefined ? low + high * 256 : undefined
    if (port !== this.#port)
      return {
        kind: 'violation',
        text: `channel ${channel} confirms ${port === undefined ? `${bytes.length} bytes` : `port ${port}`} and not port ${this.#port}`,
      }
    this.#confirmed.add(channel)
    return { kind: 'confirmation' }
  }
}

/** A message with data for the port. */
export function dataFrame(bytes: Uint8Array): Uint8Array {
  const frame = new Uint8Array(bytes.length + 1)
  frame[0] = dataChannel
  frame.set(bytes, 1)
  return frame
}
