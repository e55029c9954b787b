/** `--metrics-secure`: /metrics over TLS, for clients whose token may get it. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AccessSubject, ClientReviews } from '@tenon/kube'
import {
  type Clock,
  type HttpHandler,
  type HttpResponse,
  type Logger,
  type HttpsOptions,
  messageOf,
  Secret,
  type SecureServer,
  type ServedCertificate,
  serveHttps,
  type SocketServer,
} from '@tenon/runtime'
import { textPage } from './pages.ts'

interface Surroundings {
  readonly reviews: ClientReviews
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Serves the page over TLS, with the certificate of the folder, until the signal.
 * @throws Error if the certificate cannot be read, or the port not be opened.
 */
export async function serveSecurely(
  page: HttpHandler,
  { folder, ...port }: Omit<HttpsOptions, keyof ServedCertificate> & { readonly folder: string },
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<SocketServer> {
  const first = await readCertificate(folder)
  const server = await serveHttps(forAuthorized(page, surroundings), { ...port, ...first })
  void keepCertificate({ folder, first, server }, surroundings, signal)
  return server
}

/** What the API server said of a token. */
type Verdict =
  | { readonly kind: 'unknown' }
  | { readonly kind: 'denied'; readonly user: string }
  | { readonly kind: 'allowed' }

interface Known {
  readonly verdict: Promise<Verdict>
  readonly untilMs: number
}

/** How long a verdict holds. */
const verdictMs = 60_000
/** Tokens that are remembered; whoever sends more at once is asked about anew. */
const mostTokens = 200

/** Serves the page to clients whose bearer token is known to the cluster and may get the page's path. */
function forAuthorized(page: HttpHandler, { reviews, clock, logger }: Surroundings): HttpHandler {
  /** By hash of token and path; oldest first. */
  const known = new Map<string, Known>()
  const verdictOn = (token: string, path: string): Promise<Verdict> => {
    const key = createHash('sha256').update(`${path}\n${token}`).digest('base64')
    const now = clock.monotonic()
    const former = known.get(key)
    if (former !== undefined && now < former.untilMs) return former.verdict
    known.delete(key)
    const [oldest] = known.keys()
    if (oldest !== undefined && known.size >= mostTokens) known.delete(oldest)
    // Not the signal of one client: others may wait for the same verdict.
    const verdict = verdictOf(reviews, new Secret(token), path)
    known.set(key, { verdict, untilMs: now + verdictMs })
    verdict.catch(() => known.delete(key))
    return verdict
  }
  return async (request, signal) => {
    const token = /^Bearer +([\w~+/.-]+=*)$/i.exec(request.headers['authorization'] ?? '')?.[1]
    if (token === undefined) return unauthorized()
    const [path = ''] = request.path.split('?')
    let verdict: Verdict
    try {
      verdict = await verdictOn(token, path)
    } catch (error) {
      logger.error(
        'a client of /metrics cannot be checked; grant create on tokenreviews and subjectaccessreviews',
        {
          error,
        },
      )
      return textPage(500, 'the client cannot be checked\n')
    }
    if (verdict.kind === 'unknown') return unauthorized()
    if (verdict.kind === 'denied') return textPage(403, `${verdict.user} may not get ${path}\n`)
    return await page(request, signal)
  }
}

const unauthorized = (): HttpResponse =>
  textPage(401, 'send the token of a service account that may get this path\n', {
    'www-authenticate': 'Bearer',
  })

async function verdictOf(reviews: ClientReviews, token: Secret, path: string): Promise<Verdict> {
  const subject: AccessSubject | undefined = await reviews.subjectOf(token)
  if (subject === undefined) return { kind: 'unknown' }
  return (await reviews.mayGet(path, subject)) ? { kind: 'allowed' } : { kind: 'denied', user: subject.user }
}

/** @throws Error of the file system. */
async function readCertificate(folder: string): Promise<ServedCertificate> {
  const [certificate, key] = await Promise.all(
    ['tls.crt', 'tls.key'].map((name) => readFile(join(folder, name), 'utf8')),
  )
  return { certificate: certificate ?? '', privateKey: new Secret(key ?? '') }
}

/** Files are read this often: a Secret's mount changes by symbolic links, which watches miss. */
const rereadMs = 10_000

/** Presents the certificate of the folder whenever its files have changed. A faulty one is logged once, and the former stays. */
async function keepCertificate(
  {
    folder,
    first,
    server,
  }: { readonly folder: string; readonly first: ServedCertificate; readonly server: SecureServer },
  { clock, logger }: Pick<Surroundings, 'clock' | 'logger'>,
  signal: AbortSignal,
): Promise<void> {
  let current = textOf(first)
  let fault = ''
  while (!signal.aborted) {
    await clock.sleep(rereadMs, signal).catch(() => undefined)
    try {
      const served = await readCertificate(folder)
      if (textOf(served) === current) continue
      server.present(served)
      current = textOf(served)
      fault = ''
      logger.info('/metrics has a new certificate', { folder })
    } catch (error) {
      const text = messageOf(error)
      if (text !== fault) logger.error('/metrics keeps its former certificate', { folder, error })
      fault = text
    }
  }
}

const textOf = ({ certificate, privateKey }: ServedCertificate): string => certificate + privateKey.reveal()
