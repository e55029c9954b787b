import type { Transport } from '@tenon/runtime'

/** How a provider sends requests to its cloud. */
export interface CloudRequests {
  /** Wraps a transport to the cloud, so that writes are blocked once this process is no longer the leader. */
  readonly fenced: (transport: Transport) => Transport
  /** For requests to the cloud. */
  readonly userAgent: string
}
