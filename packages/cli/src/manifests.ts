/** Reads manifests from files and directories. */
import { Stats } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import type { UnstructuredObject } from '@tenon/api'
import { CliError } from './errors.ts'
import { readBooleanWords, readStream } from './yaml-text.ts'

/** An object and its position. */
export interface Manifest {
  readonly object: UnstructuredObject
  /** `FILE:LINE`. */
  readonly source: string
}

const extensions: ReadonlySet<string> = new Set(['.yaml', '.yml', '.json'])

/** A file that cannot be read. */
export interface Unreadable {
  readonly path: string
  /** `cannot read PATH: REASON`. */
  readonly message: string
}

/** Files to read, and those that cannot be read. */
export interface FoundFiles {
  readonly files: readonly string[]
  readonly unreadable: readonly Unreadable[]
}

/**
 * Every object of the given files, directories (their own files, by name) and lists. An unreadable file does
 * not affect the others.
 * @param warn called for omitted objects and duplicate keys.
 * @throws CliError naming the file, the line and the problem, if nothing can be read.
 */
export async function readManifests(
  paths: readonly string[],
  cwd: string,
  warn: (message: string) => void,
): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = []
  const failures: CliError[] = []
  for (const path of paths) {
    const { files, unreadable } = await filesOf(path, cwd)
    failures.push(...unreadable.map(({ message }) => new CliError(message)))
    for (const file of files) {
      try {
        manifests.push(...(await readManifestFile(file, resolve(cwd, file), warn)))
      } catch (error) {
        if (!(error instanceof CliError)) throw error
        failures.push(error)
      }
    }
  }
  if (manifests.length === 0 && failures[0] !== undefined) throw failures[0]
  for (const failure of failures) warn(`${failure.message}; skipped`)
  return manifests
}

/**
 * The file itself, or the manifests of a directory sorted by name; with `isRecursive` those of its
 * subdirectories too.
 * @throws CliError for a directory without manifests.
 */
export async function filesOf(path: string, cwd: string, isRecursive = false): Promise<FoundFiles> {
  const info = await stat(resolve(cwd, path)).catch((cause: unknown) => cause)
  if (!(info instanceof Stats)) return { files: [], unreadable: [unreadableAt(path, info)] }
  if (!info.isDirectory()) return { files: [path], unreadable: [] }
  const found = await manifestsIn(path, cwd, isRecursive)
  if (found.files.length === 0 && found.unreadable.length === 0) {
    throw new CliError(`directory ${path} contains no .yaml, .yml or .json file`)
  }
  return { files: found.files.toSorted(), unreadable: found.unreadable }
}

async function manifestsIn(directory: string, cwd: string, isRecursive: boolean): Promise<FoundFiles> {
  const files: string[] = []
  const unreadable: Unreadable[] = []
  const entries = await readdir(resolve(cwd, directory), { withFileTypes: true }).catch((cause: unknown) => {
    unreadable.push(unreadableAt(directory, cause))
    return []
  })
  for (const entry of entries) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) {
      if (!isRecursive) continue
      const below = await manifestsIn(path, cwd, isRecursive)
      files.push(...below.files)
      unreadable.push(...below.unreadable)
    } else if (extensions.has(extname(entry.name))) files.push(path)
  }
  return { files, unreadable }
}

export function unreadableAt(path: string, cause: unknown): Unreadable {
  return { path, message: `cannot read ${path}: ${reasonOf(cause)}` }
}

async function readManifestFile(
  name: string,
  path: string,
  warn: (message: string) => void,
): Promise<readonly Manifest[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CliError(unreadableAt(name, cause).message, { cause })
  })
  return parseManifests(name, text, warn)
}

/**
 * Every object of a YAML or JSON text.
 * @param name for messages.
 * @throws CliError for invalid text.
 */
export function parseManifests(
  name: string,
  text: string,
  warn: (message: string) => void = () => undefined,
): readonly Manifest[] {
  const { documents, placeOf } = readStream(text)
  return documents.flatMap(({ document, error, repeatedKeys }) => {
    if (error !== undefined) {
      throw new CliError(`${name}:${placeOf(error.offset).line}: not valid YAML: ${error.message}`)
    }
    for (const { offset, key } of repeatedKeys) {
      const place = `${name}:${placeOf(offset).line}`
      warn(`${place}: key ${JSON.stringify(key)} is already set in this map; the last one is used`)
    }
    const { line } = placeOf(document.contents?.range[0] ?? 0)
    readBooleanWords(document)
    const value: unknown = document.toJS()
    return value === null || value === undefined ? [] : objectsOf(value, `${name}:${line}`)
  })
}

function objectsOf(value: unknown, source: string): readonly Manifest[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${source}: not a Kubernetes object: expected fields apiVersion, kind and metadata`)
  }
  const object = value as Partial<UnstructuredObject> & { items?: unknown }
  for (const field of ['apiVersion', 'kind'] as const) {
    if (typeof object[field] !== 'string') throw new CliError(`${source}: field ${field} is missing`)
  }
  if (object.kind?.endsWith('List') === true && Array.isArray(object.items)) {
    return object.items.flatMap((item) => objectsOf(item, source))
  }
  if (typeof object.metadata?.name !== 'string' && typeof object.metadata?.generateName !== 'string') {
    throw new CliError(`${source}: ${object.kind ?? 'object'}: field metadata.name is missing`)
  }
  return [{ object: object as UnstructuredObject, source }]
}

function reasonOf(cause: unknown): string {
  const code = (cause as { code?: string }).code
  if (code === 'ENOENT') return 'no such file or directory'
  if (code === 'EACCES') return 'permission denied'
  if (code === 'EISDIR') return 'it is a directory'
  if (code === 'ELOOP') return 'its symbolic links are circular'
  return cause instanceof Error ? cause.message : String(cause)
}
