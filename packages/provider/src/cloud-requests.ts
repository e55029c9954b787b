import type { Transport } from '@tenon/runtime'

/** How a provider sends requests to its cloud. */
export interface CloudRequests {
  /** Wraps a transport to the cloud so that nothing is changed there once this process no longer leads. */
  readonly fenced: (transport: Transport) => Transport
  /** Of requests to the cloud. */
  readonly userAgent: string
}
