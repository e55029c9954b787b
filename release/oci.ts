/** Writes an image as a layout of OCI, byte for byte the same from the same files. */
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { create } from 'tar'

/** A blob, as manifests refer to it. */
export interface Descriptor {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
}

/** An image of one architecture. */
export interface Image {
  readonly architecture: string
  readonly layers: readonly Layer[]
  /** How it is run, with the fields of an image configuration. */
  readonly config: Readonly<Record<string, unknown>>
}

export interface Layer {
  readonly compressed: Buffer
  /** Digest of the tar itself. */
  readonly diffId: string
  readonly origin: string
}

const mediaTypes = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  signature: 'application/vnd.dev.cosign.simplesigning.v1+json',
}

export function sha256(data: Uint8Array | string): string {
  return createHash('sha256').update(data).digest('hex')
}

/** Everything in a folder, links to folders not followed. */
export function pathsIn(folder: string, below = ''): readonly string[] {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = join(below, entry.name)
    return entry.isDirectory() ? [path, ...pathsIn(folder, path)] : [path]
  })
}

/**
 * A tar of everything in a folder that tells nothing about who made it, where and when: sorted, owned by root, with
 * one date, folders without one. Files that their owner may run have mode 755, others 644: the modes of the folder become so too.
 */
export async function tarOf(folder: string, date: Date): Promise<Buffer> {
  const names = pathsIn(folder)
  for (const name of names) {
    const path = join(folder, name)
    const status = lstatSync(path)
    if (!status.isSymbolicLink()) chmodSync(path, status.isDirectory() || status.mode & 0o100 ? 0o755 : 0o644)
  }
  // Sorted by code unit: the locale must not decide.
  const sorted = names.toSorted((a, b) => (a < b ? -1 : 1))
  return await create({ cwd: folder, portable: true, mtime: date, noDirRecurse: true }, sorted).concat()
}

/** The layer that puts a file or a folder where it belongs in the image. */
export async function layerOf(from: string, to: string, date: Date): Promise<Layer> {
  const staged = mkdtempSync(join(tmpdir(), 'tenon-layer-'))
  mkdirSync(dirname(join(staged, to)), { recursive: true })
  cpSync(from, join(staged, to), { recursive: true, verbatimSymlinks: true })
  const tar = await tarOf(staged, date)
  rmSync(staged, { recursive: true })
  return { compressed: gzipSync(tar), diffId: `sha256:${sha256(tar)}`, origin: `COPY ${to}` }
}

/**
 * Writes a layout with an index of the images into an empty folder.
 * @param name of the image with its tag.
 * @returns the index, whose digest is what is pulled, pinned and signed.
 */
export function writeLayout(folder: string, images: readonly Image[], name: string, date: Date): Descriptor {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  writeFileSync(join(folder, 'oci-layout'), json({ imageLayoutVersion: '1.0.0' }))
  const manifests = images.map(({ architecture, layers, config }) => {
    const platform = { architecture, os: 'linux', ...(architecture === 'arm64' && { variant: 'v8' }) }
    const created = date.toISOString()
    const image = {
      created,
      ...platform,
      config,
      rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
      history: layers.map(({ origin }) => ({ created, created_by: origin })),
    }
    const manifest = {
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config: writeBlob(folder, mediaTypes.config, json(image)),
      layers: layers.map(({ compressed }) => writeBlob(folder, mediaTypes.layer, compressed)),
    }
    return { ...writeBlob(folder, mediaTypes.manifest, json(manifest)), platform }
  })
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
  const descriptor = writeBlob(folder, mediaTypes.index, json(index))
  writeIndex(folder, [named(descriptor, name, 'imageIndex')])
  return descriptor
}

/**
 * Writes what belongs over the layout of an image so that it is a signed one, as `cosign save` writes it.
 * @param sign the signature of these bytes.
 */
export function writeSignature(
  folder: string,
  image: Descriptor,
  name: string,
  sign: (payload: Buffer) => Buffer,
): void {
  mkdirSync(join(folder, 'blobs/sha256'), { recursive: true })
  const payload = json({
    critical: {
      identity: { 'docker-reference': name.replace(/:[^/]*$/, '') },
      image: { 'docker-manifest-digest': image.digest },
      type: 'cosign container image signature',
    },
    optional: null,
  })
  const layer = writeBlob(folder, mediaTypes.signature, payload)
  const config = {
    architecture: '',
    os: '',
    config: {},
    rootfs: { type: 'layers', diff_ids: [layer.digest] },
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: mediaTypes.manifest,
    config: writeBlob(folder, mediaTypes.config, json(config)),
    layers: [
      { ...layer, annotations: { 'dev.cosignproject.cosign/signature': sign(payload).toString('base64') } },
    ],
  }
  const descriptor = writeBlob(folder, mediaTypes.manifest, json(manifest))
  const tag = `${name.replace(/:[^/]*$/, '')}:${image.digest.replace(':', '-')}.sig`
  writeIndex(folder, [named(image, name, 'imageIndex'), named(descriptor, tag, 'sigs')])
}

/** With the names that containerd, skopeo and cosign look for. */
function named(descriptor: Descriptor, name: string, kind: string): object {
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.replace(/^.*:/, ''),
    kind: `dev.cosignproject.cosign/${kind}`,
  }
  return { ...descriptor, annotations }
}

function writeIndex(folder: string, manifests: readonly object[]): void {
  const index = { schemaVersion: 2, mediaType: mediaTypes.index, manifests }
  writeFileSync(join(folder, 'index.json'), json(index))
}

function writeBlob(folder: string, mediaType: string, data: Buffer): Descriptor {
  const digest = sha256(data)
  writeFileSync(join(folder, 'blobs/sha256', digest), data)
  return { mediaType, digest: `sha256:${digest}`, size: data.length }
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value))
}
