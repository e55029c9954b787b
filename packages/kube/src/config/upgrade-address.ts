import type http from 'node:http'

/** Where to open a connection of another protocol, and with which credentials. */
export interface UpgradeAddress {
  readonly url: URL
  readonly agent: http.Agent
  readonly headers: Readonly<Record<string, string>>
}
