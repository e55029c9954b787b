/**
 * Whose certificates are trusted: those that Node brings and those of the host, by the files and variables that
 * Go's programs read. A deployment that mounts the host's bundle, or names that of a proxy, goes on to work.
 */
import { ownValue } from '@tenon/api'
import type { ProviderEnvironment } from '@tenon/provider'
import { X509Certificate } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'

/** The first that can be read counts. */
const bundles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]
const folders = ['/etc/ssl/certs', '/etc/pki/tls/certs']

export const trustVariables = ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'] as const

export interface Trust {
  readonly context: SecureContext
  /** Variables that name what cannot be read, with the reason. */
  readonly faults: readonly string[]
}

/** Reads the authorities. SSL_CERT_FILE and SSL_CERT_DIR stand in place of what is usual, as they do in Go. */
export async function readTrust(env: ProviderEnvironment): Promise<Trust> {
  const [file, folder, extra] = trustVariables.map((name) => ownValue(env, name)?.trim() || undefined)
  const isChosen = file !== undefined || folder !== undefined
  const faults: string[] = []
  const named = async (
    variable: string,
    path: string,
    read: (path: string) => Promise<readonly string[]>,
  ) => {
    try {
      return await read(path)
    } catch (error) {
      faults.push(`${variable} names ${path}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`)
      return []
    }
  }
  const certificates = [
    ...(file === undefined ? await firstBundle() : await named('SSL_CERT_FILE', file, bundle)),
    ...(folder === undefined
      ? await ofFolders(folders, (path) => allIn(path).catch(() => []))
      : await ofFolders(folder.split(':').filter(Boolean), (path) => named('SSL_CERT_DIR', path, allIn))),
    ...(extra === undefined ? [] : await named('NODE_EXTRA_CA_CERTS', extra, bundle)),
  ]
  const authorities = [...new Set([...(isChosen ? [] : rootCertificates), ...certificates])]
  return { context: contextOf(authorities), faults }
}

function contextOf(authorities: readonly string[]): SecureContext {
  try {
    return createSecureContext({ ca: [...authorities] })
  } catch {
    // One that cannot be read makes the rest useless; looking at each takes its time.
    return createSecureContext({ ca: authorities.filter(isReadable) })
  }
}

async function firstBundle(): Promise<readonly string[]> {
  for (const path of bundles) {
    const certificates = await bundle(path).catch(() => undefined)
    if (certificates !== undefined) return certificates
  }
  return []
}

async function ofFolders(
  paths: readonly string[],
  read: (path: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  return (await Promise.all(paths.map(read))).flat()
}

/** Of every file; those that hold no certificates are passed over. */
async function allIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder)
  const found = await Promise.all(names.map((name) => bundle(join(folder, name)).catch(() => [])))
  return found.flat()
}

/** Written as Node writes its own, so that the same one is seen to be the same. */
async function bundle(path: string): Promise<readonly string[]> {
  const text = (await readFile(path, 'utf8')).replaceAll('\r', '')
  return text.match(/-----BEGIN CERTIFICATE-----\n[^-]+\n-----END CERTIFICATE-----/g) ?? []
}

function isReadable(certificate: string): boolean {
  try {
    return new X509Certificate(certificate).subject !== undefined
  } catch {
    return false
  }
}
