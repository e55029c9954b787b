/** Signatures as cosign makes and checks them with a key, without a transparency log: ECDSA on P-256 over SHA-256. */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign as signWith,
} from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from './oci.ts'

const statementType = 'application/vnd.in-toto+json'

/** A key that exists in this process alone. */
export function throwAwayKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
}

/** @throws Error if the text is not the private key that cosign checks by default. */
export function readKey(pem: string): KeyObject {
  let key: KeyObject
  try {
    key = createPrivateKey(pem)
  } catch {
    throw new Error('the signing key is no private key in PEM without a password')
  }
  if (key.asymmetricKeyDetails?.namedCurve !== 'prime256v1')
    throw new Error('the signing key is not of the curve P-256 (prime256v1)')
  return key
}

/** In PEM. */
export function publicKeyOf(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString()
}

/** In DER. */
export function sign(key: KeyObject, data: Buffer): Buffer {
  return signWith('sha256', data, key)
}

/** What `cosign verify-blob --bundle` reads. */
function blobBundle(key: KeyObject, data: Buffer): string {
  const messageDigest = { algorithm: 'SHA2_256', digest: Buffer.from(sha256(data), 'hex').toString('base64') }
  return bundle(key, {
    messageSignature: { messageDigest, signature: sign(key, data).toString('base64') },
  })
}

/** A statement of in-toto in its envelope, which `cosign verify-blob-attestation --bundle` reads. */
export function statementBundle(key: KeyObject, statement: object): string {
  const payload = Buffer.from(JSON.stringify(statement))
  // The pre-authentication encoding of DSSE.
  const head = `DSSEv1 ${statementType.length} ${statementType} ${payload.length} `
  const sig = sign(key, Buffer.concat([Buffer.from(head), payload])).toString('base64')
  return bundle(key, {
    dsseEnvelope: {
      payload: payload.toString('base64'),
      payloadType: statementType,
      signatures: [{ sig }],
    },
  })
}

function bundle(key: KeyObject, content: object): string {
  const hint = Buffer.from(
    sha256(createPublicKey(key).export({ type: 'spki', format: 'der' })),
    'hex',
  ).toString('base64')
  return `${JSON.stringify({
    mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
    verificationMaterial: { publicKey: { hint } },
    ...content,
  })}\n`
}

/** Writes the checksums of all files of a folder, their signatures, and the public key. */
export function signFolder(folder: string, key: KeyObject): void {
  const lines = readdirSync(folder)
    .toSorted()
    .map((name) => `${sha256(readFileSync(join(folder, name)))}  ${name}\n`)
  const sums = Buffer.from(lines.join(''))
  writeFileSync(join(folder, 'SHA256SUMS'), sums)
  writeFileSync(join(folder, 'SHA256SUMS.sig'), sign(key, sums))
  writeFileSync(join(folder, 'SHA256SUMS.sigstore.json'), blobBundle(key, sums))
  writeFileSync(join(folder, 'release.pub'), publicKeyOf(key))
}
