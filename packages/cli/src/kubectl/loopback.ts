/** Whether a URL leads to this host. */
import { isIPv4 } from 'node:net'

export function isLoopback(url: string): boolean {
  const host = URL.parse(url)?.hostname.replace(/^\[|\]$/g, '')
  if (host === undefined) return false
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}
