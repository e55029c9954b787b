import type http from 'node:http'

/** Where and as whom to open a connection of another protocol. */
export interface UpgradeAddress {
  readonly url: URL
  readonly agent: http.Agent
  readonly headers: Readonly<Record<string, string>>
}
