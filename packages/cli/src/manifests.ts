/** Reads manifests from files and directories. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { extname, join, resolve } from 'node:path'
import type { UnstructuredObject } from '@tenon/api'
import { LineCounter, parseAllDocuments } from 'yaml'
import { CliError } from './errors.ts'

/** One object with the place it was read from. */
export interface Manifest {
  readonly object: UnstructuredObject
  /** `FILE:LINE`. */
  readonly source: string
}

const extensions: ReadonlySet<string> = new Set(['.yaml', '.yml', '.json'])

/**
 * Every object of the given files, directories (their own files, by name) and lists.
 * @throws CliError naming the file, the line and what is wrong.
 */
export async function readManifests(paths: readonly string[], cwd: string): Promise<readonly Manifest[]> {
  const manifests: Manifest[] = []
  for (const path of paths) {
    for (const file of await filesOf(path, cwd))
      manifests.push(...(await readManifestFile(file, resolve(cwd, file))))
  }
  return manifests
}

/**
 * The file itself, or the manifests of a directory in order of their names; with `isRecursive` those of the
 * directories below as well.
 * @throws CliError naming what cannot be read.
 */
export async function filesOf(path: string, cwd: string, isRecursive = false): Promise<readonly string[]> {
  const info = await stat(resolve(cwd, path)).catch((cause: unknown) => {
    throw new CliError(`cannot read ${path}: ${reasonOf(cause)}`, { cause })
  })
  if (!info.isDirectory()) return [path]
  const names = (await readdir(resolve(cwd, path), { recursive: isRecursive }))
    .filter((name) => extensions.has(extname(name)))
    .toSorted()
  if (names.length === 0) throw new CliError(`directory ${path} holds no .yaml, .yml or .json file`)
  return names.map((name) => join(path, name))
}

async function readManifestFile(name: string, path: string): Promise<readonly Manifest[]> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new CliError(`cannot read ${name}: ${reasonOf(cause)}`, { cause })
  })
  return parseManifests(name, text)
}

/** Every object of a YAML or JSON text; `name` stands in error messages. */
export function parseManifests(name: string, text: string): readonly Manifest[] {
  const lineCounter = new LineCounter()
  return parseAllDocuments(text, { lineCounter }).flatMap((document) => {
    const [error] = document.errors
    if (error !== undefined) {
      const line = lineCounter.linePos(error.pos[0]).line
      throw new CliError(`${name}:${line}: not valid YAML: ${error.message.split('\n')[0]}`)
    }
    const line = lineCounter.linePos(document.contents?.range?.[0] ?? 0).line
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
  return cause instanceof Error ? cause.message : String(cause)
}
