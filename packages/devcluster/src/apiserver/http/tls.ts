import '../kinds/reflect-metadata.ts'
import { X509Certificate } from 'node:crypto'
import * as x509 from '@peculiar/x509'
import { Secret } from '@tenon/runtime'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const validityMs = 10 * 365 * 24 * 3600_000
/** Certificates are valid from a little earlier, for clients whose clocks are late. */
const backdateMs = 3600_000

/** A certificate and its private key, as PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly privateKey: Secret
}

/** All credentials of a cluster. */
export interface Credentials {
  readonly certificateAuthority: KeyPair
  readonly server: KeyPair
  /** Client certificate of the administrator. */
  readonly admin: KeyPair
  readonly adminToken: Secret
  /** Private key that signs service account tokens. */
  readonly signingKey: Secret
}

/** The DNS names of an API server. */
const serverNames = [
  'localhost',
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
]
const serverAddresses = ['127.0.0.1', '::1', '10.96.0.1']

/**
 * Creates the credentials of a new cluster: authority, certificates, token and signing key.
 * @param nowMs the start of their validity of ten years.
 * @param extraHosts more names and addresses of the server.
 */
export async function createCredentials(
  nowMs: number,
  extraHosts: readonly string[] = [],
): Promise<Credentials> {
  x509.cryptoProvider.set(crypto)
  const authorityKeys = await generateKeys()
  const validity = { notBefore: new Date(nowMs - backdateMs), notAfter: new Date(nowMs + validityMs) }
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: 'CN=tenon-devcluster-ca',
    ...validity,
    keys: authorityKeys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  })
  const issue = (subject: string, usage: x509.ExtendedKeyUsage, names: x509.JsonGeneralNames) =>
    issueCertificate({ authority, authorityKeys, ...validity, subject, usage, names })
  const hosts = [...serverNames, ...serverAddresses, ...extraHosts]
  const names = hosts.map((host) => ({ type: isAddress(host) ? 'ip' : 'dns', value: host }) as const)
  const signing = await generateKeys()
  return {
    certificateAuthority: {
      certificate: `${authority.toString('pem')}\n`,
      privateKey: await privatePem(authorityKeys.privateKey),
    },
    server: await issue('CN=kube-apiserver', x509.ExtendedKeyUsage.serverAuth, names),
    admin: await issue('O=system:masters,CN=kubernetes-admin', x509.ExtendedKeyUsage.clientAuth, []),
    adminToken: new Secret(randomHex(32)),
    signingKey: await privatePem(signing.privateKey),
  }
}

/** Whether a server certificate is valid for all these names at this time. */
export function isServerCertificateFor(
  certificate: string,
  hosts: readonly string[],
  nowMs: number,
): boolean {
  const parsed = new X509Certificate(certificate)
  if (Date.parse(parsed.validTo) < nowMs) return false
  return hosts.every((host) =>
    isAddress(host) ? parsed.checkIP(host) !== undefined : parsed.checkHost(host) !== undefined,
  )
}

interface Issue {
  readonly authority: x509.X509Certificate
  readonly authorityKeys: KeysOfPair
  readonly notBefore: Date
  readonly notAfter: Date
  readonly subject: string
  readonly usage: x509.ExtendedKeyUsage
  readonly names: x509.JsonGeneralNames
}

async function issueCertificate(issue: Issue): Promise<KeyPair> {
  const keys = await generateKeys()
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: issue.subject,
    issuer: issue.authority.subject,
    notBefore: issue.notBefore,
    notAfter: issue.notAfter,
    publicKey: keys.publicKey,
    signingKey: issue.authorityKeys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([issue.usage]),
      await x509.AuthorityKeyIdentifierExtension.create(issue.authorityKeys.publicKey),
      ...(issue.names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(issue.names)]),
    ],
  })
  return { certificate: `${certificate.toString('pem')}\n`, privateKey: await privatePem(keys.privateKey) }
}

/** As typed by Node; a browser's types differ. */
type KeysOfPair = Extract<
  Awaited<ReturnType<typeof crypto.subtle.generateKey>>,
  { readonly privateKey: unknown }
>
type PrivateKey = KeysOfPair['privateKey']

function generateKeys(): Promise<KeysOfPair> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

async function privatePem(key: PrivateKey): Promise<Secret> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key)).toString('base64')
  const lines = der.match(/.{1,64}/g) ?? []
  return new Secret(`-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`)
}

function randomHex(bytes: number): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('hex')
}

/** A positive number, as certificates require. */
function serialNumber(): string {
  return `01${randomHex(15)}`
}

function isAddress(host: string): boolean {
  return host.includes(':') || /^\d+(\.\d+){3}$/.test(host)
}
