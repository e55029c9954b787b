/**
 * Trusted certificate authorities: those of Node and of the host, from the same files and variables as in Go, so that
 * deployments that mount the host's bundle or a proxy's still work.
 */
import { ownValue } from '@tenon/api'
import type { ProviderEnvironment } from '@tenon/provider'
import { X509Certificate } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls'

/** The first readable one is used. */
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
  /** Variables whose files cannot be read, with the reason. */
  readonly faults: readonly string[]
}

/** Reads the authorities. As in Go, SSL_CERT_FILE and SSL_CERT_DIR replace the default paths. */
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
    // An invalid certificate would invalidate the rest, so each is checked.
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

/** Certificates of every file; files without any are skipped. */
async function allIn(folder: string): Promise<readonly string[]> {
  const names = await readdir(folder)
  const found = await Promise.all(names.map((name) => bundle(join(folder, name)).catch(() => [])))
  return found.flat()
}

/** Formatted as in Node's own list, so that duplicates are recognized. */
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
