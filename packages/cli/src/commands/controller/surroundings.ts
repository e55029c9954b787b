/** The environment of the controller: namespace of its pod, and revision. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const namespaceFile = '/var/run/secrets/kubernetes.io/serviceaccount/namespace'

/** The namespace of the pod this runs in; undefined outside of a pod. */
export function podNamespace(file: string = namespaceFile): string | undefined {
  return textOf(file)?.trim()
}

const revision = /^[0-9a-f]{7,40}(-dirty)?$/

/**
 * The revision of this program in seven characters: of an image from `TENON_COMMIT`, else of the Git checkout;
 * undefined if unknown.
 */
export function commitOf(
  env: Readonly<Record<string, string | undefined>>,
  root: string = join(import.meta.dirname, '../../../../..'),
): string | undefined {
  const given = env['TENON_COMMIT'] ?? ''
  const commit = given === '' ? checkedOut(join(root, '.git')) : given
  if (commit === undefined || !revision.test(commit)) return undefined
  return commit.slice(0, 7) + (commit.endsWith('-dirty') ? '-dirty' : '')
}

function checkedOut(folder: string): string | undefined {
  const head = textOf(join(folder, 'HEAD'))?.trim()
  const [, name] = /^ref: (.+)$/.exec(head ?? '') ?? []
  if (name === undefined) return head
  const loose = textOf(join(folder, name))?.trim()
  if (loose !== undefined) return loose
  const packed = textOf(join(folder, 'packed-refs')) ?? ''
  return packed
    .split('\n')
    .find((line) => line.endsWith(` ${name}`))
    ?.split(' ')[0]
}

function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // A missing file and one that may not be read are treated alike.
    return undefined
  }
}
