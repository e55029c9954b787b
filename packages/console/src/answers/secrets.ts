/** Takes out of an object what nobody should read over somebody's shoulder (page.md 2). */
import type { KubeObject } from '@tenon/api'

/** Stands for a value that is left out. */
export const hiddenValue = '(hidden)'

const word = 'pass(?:word|wd|phrase)|secret|token(?!s)|credential|api-?key|private-?key|access-?key'
const secretName = new RegExp(`${word}|user-?data`, 'i')
/** Fields that only tell where a secret is. */
const referenceName = /(names?|namespace|ref|path|kind|type|mode|url|policy|version|audience)$/i
/** The annotation repeats the object as it was written, with everything in it. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** The lengths of names are bounded, so that a text of 256 KiB takes no longer than its length. */
const inText: readonly (readonly [pattern: RegExp, shown: string])[] = [
  // https://user:password@host
  [/(:\/\/[^\s/:@]*:)[^\s/@]+@/g, `$1${hiddenValue}@`],
  // --token=x, PASSWORD=x
  [new RegExp(`((?:${word})[\\w-]{0,40}=)[^\\s"',;&]+`, 'gi'), `$1${hiddenValue}`],
  // {"password":"x"} in a text
  [
    new RegExp(`("[\\w.-]{0,60}(?:${word})[\\w.-]{0,60}"\\s{0,9}:\\s{0,9})"(?:[^"\\\\]|\\\\.)*"`, 'gi'),
    `$1"${hiddenValue}"`,
  ],
  [/\b((?:Bearer|Basic) )[\w.~+/=-]{8,}/g, `$1${hiddenValue}`],
  [
    /-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|$)/g,
    hiddenValue,
  ],
]

/**
 * The object without managed fields, values of environment variables, and what is called or looks like a
 * password, a token or user data. References to Secrets stay.
 */
export function withoutSecrets(object: KubeObject): object {
  const { managedFields: _, annotations, ...metadata } = object.metadata
  const kept = Object.entries(annotations ?? {}).filter(([key]) => key !== lastApplied)
  return without({
    ...object,
    metadata: { ...metadata, ...(kept.length > 0 && { annotations: Object.fromEntries(kept) }) },
  }) as object
}

function without(value: unknown, key = ''): unknown {
  if (typeof value === 'string') return isSecret(key) ? hiddenValue : shownText(value)
  if (Array.isArray(value)) {
    if (key === 'env' || key === 'environment') return value.map(withoutValue)
    if (key === 'args' || key === 'command') return argumentsOf(value)
    return value.map((each) => without(each, key))
  }
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, without(each, name)]))
}

function isSecret(key: string): boolean {
  return secretName.test(key) && !referenceName.test(key)
}

/** Names and references of an environment variable tell enough. */
function withoutValue(variable: unknown): unknown {
  const rest = without(variable)
  return typeof rest === 'object' && rest !== null && 'value' in rest ? { ...rest, value: hiddenValue } : rest
}

/** `--password x` takes two arguments. */
function argumentsOf(args: readonly unknown[]): readonly unknown[] {
  return args.map((each, at) => {
    const before = args[at - 1]
    const isValue =
      typeof before === 'string' && before.startsWith('-') && !before.includes('=') && isSecret(before)
    return typeof each === 'string' && isValue && !each.startsWith('-') ? hiddenValue : without(each)
  })
}

function shownText(text: string): string {
  return inText.reduce((shown, [pattern, by]) => shown.replace(pattern, by), text)
}
