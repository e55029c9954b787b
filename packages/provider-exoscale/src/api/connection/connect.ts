/** Connections to the API, through a proxy if one is configured. */
import { once } from 'node:events'
import { request as httpRequest, STATUS_CODES } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { messageOf } from '@tenon/runtime'
import { ExoscaleConnectionError } from '../errors.ts'
import type { Proxy, Route } from './proxy.ts'
import { type Trust, trustVariables } from './trust.ts'

/** Without it, a firewall that drops packets would block for minutes. */
const patienceMs = 20_000
/** TLS errors that a certificate authority cannot fix. */
const otherFaults: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'ERR_TLS_CERT_ALTNAME_INVALID',
])

/** @returns a connection for requests to `target`. Rejects with ExoscaleConnectionError. */
export async function connectTo(target: URL, route: Route, trust: Trust): Promise<Socket> {
  try {
    if (route.kind === 'direct') return await open(target, trust)
    // Requests without TLS are sent to the proxy itself, with the whole URL.
    if (target.protocol === 'http:') return await open(route.proxy.url, trust)
    return await secured(await tunnel(target, route.proxy, trust), target, trust)
  } catch (error) {
    throw connectionError(target, route, messageOf(error), error)
  }
}

/** @param said what went wrong. */
export function connectionError(target: URL, route: Route, said: string, cause: unknown) {
  const wayOut =
    route.kind === 'proxied'
      ? ''
      : route.excludedBy === undefined
        ? `; where a proxy leads out of the network, name it in ${route.variable}`
        : `; where the proxy is needed, take it out of ${route.excludedBy}`
  // An UntrustedError contains its name and the fix already.
  const fix = cause instanceof UntrustedError ? '' : wayOut
  return new ExoscaleConnectionError(`${routeText(target, route)}: ${said}${fix}`, { cause })
}

function routeText(target: URL, route: Route): string {
  if (route.kind === 'proxied')
    return `no connection to ${target.host} through the proxy ${placeOf(route.proxy.url)} of ${route.proxy.variable}`
  return `no connection to ${target.host}${route.excludedBy === undefined ? '' : `, direct because of ${route.excludedBy}`}`
}

/** Without user and password. */
function placeOf({ protocol, host }: URL): string {
  return `${protocol}//${host}`
}

async function open(url: URL, trust: Trust): Promise<Socket> {
  const isTls = url.protocol === 'https:'
  const socket = connectPlain({ host: bare(url), port: Number(url.port || (isTls ? 443 : 80)) })
  const connected = await withinPatience(socket, 'connect')
  return isTls ? await secured(connected, url, trust) : connected
}

/** A tunnel to the target through the proxy. */
async function tunnel(target: URL, { url, variable }: Proxy, trust: Trust): Promise<Socket> {
  const socket = await open(url, trust)
  const place = `${target.hostname}:${target.port || '443'}`
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const asked = send({
    createConnection: () => socket,
    method: 'CONNECT',
    path: place,
    headers: { host: place, ...proxyAuthorization(url) },
    timeout: patienceMs,
  })
  const timeout = new Error(`the proxy did not answer within ${patienceMs / 1000} s`)
  asked.on('timeout', () => asked.destroy(timeout))
  // A refusal of CONNECT arrives as a response.
  asked.on('response', () => asked.destroy(new Error('the proxy does not know CONNECT')))
  asked.end()
  const [{ statusCode = 0 }] = (await once(asked, 'connect')) as [{ readonly statusCode?: number }]
  socket.setTimeout(0)
  if (statusCode >= 200 && statusCode < 300) return socket
  socket.destroy()
  const fix =
    statusCode === 407
      ? `write user and password into ${variable} (http://USER:PASSWORD@HOST:PORT)`
      : `let the proxy pass it, or name it in NO_PROXY`
  throw new Error(
    `the proxy answered ${statusCode} ${STATUS_CODES[statusCode] ?? ''} to CONNECT ${place}: ${fix}`,
  )
}

/** For requests through a proxy. */
export function proxyAuthorization({ username, password }: URL): Readonly<Record<string, string>> {
  if (username === '' && password === '') return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { 'proxy-authorization': `Basic ${Buffer.from(pair).toString('base64')}` }
}

/** TLS over a connection; rejects before anything is sent to an untrusted server. */
async function secured(socket: Socket, url: URL, trust: Trust): Promise<Socket> {
  const host = bare(url)
  const tls = connectTls({
    socket,
    secureContext: trust.context,
    host,
    ...(isIP(host) === 0 ? { servername: host } : {}),
    ALPNProtocols: ['http/1.1'],
    // Checked below, as Node would close the connection before its issuer can be reported.
    rejectUnauthorized: false,
  })
  await withinPatience(tls, 'secureConnect')
  if (tls.authorized) return tls
  const error = new UntrustedError(untrusted(url, tls, trust))
  tls.destroy()
  throw error
}

/** The server's certificate is not trusted. */
export class UntrustedError extends Error {}

function untrusted(url: URL, tls: TLSSocket, { faults }: Trust): string {
  // Node declares it as Error, but it is a code.
  const code = String(tls.authorizationError)
  const issuer = issuerOf(tls.getPeerCertificate(true))
  const presents = `${url.hostname} presents a certificate of the authority "${issuer}"`
  if (otherFaults.has(code)) return `${presents}, which cannot be accepted (${code})`
  const [file, folder, extra] = trustVariables
  const read = faults.length === 0 ? '' : `; ${faults.join(', ')}`
  return `${presents}, which is not trusted (${code}): where it is that of your proxy, name a file with its certificate in ${file} or ${extra}, or a folder in ${folder}${read}`
}

/** Issuer of the highest certificate of the chain. */
function issuerOf(certificate: DetailedPeerCertificate): string {
  let highest = certificate
  while (highest.issuerCertificate !== undefined && highest.issuerCertificate !== highest)
    highest = highest.issuerCertificate
  const { CN, O } = (highest.issuer ?? {}) as Readonly<Record<string, string | undefined>>
  return CN ?? O ?? 'without a name'
}

/** Rejects with the socket's error. */
async function withinPatience<S extends Socket>(socket: S, event: string): Promise<S> {
  const onTimeout = () => {
    socket.destroy(new Error(`no answer within ${patienceMs / 1000} s`))
  }
  socket.setTimeout(patienceMs, onTimeout)
  await once(socket, event)
  socket.setTimeout(0)
  socket.off('timeout', onTimeout)
  return socket
}

function bare({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}
