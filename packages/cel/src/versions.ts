import type { Environment } from '@marcbachmann/cel-js'
import { parse, SemVer } from 'semver'

/** Parses a version with three numbers and without `v`. */
function strictVersion(text: string): SemVer | undefined {
  return /^\d/.test(text) && text === text.trim() ? (parse(text) ?? undefined) : undefined
}

const digit = /^[0-9]/

/** Removes `v` and leading zeros, and adds missing numbers; undefined if numbers are missing before a suffix. */
function normalized(text: string): string | undefined {
  const [major = '', minor, ...rest] = text.replace(/^v/, '').split('.')
  const given = [major, ...(minor === undefined ? [] : [minor]), ...(rest.length > 0 ? [rest.join('.')] : [])]
  const parts = given.map((part) => {
    if (part.length <= 1) return part
    const bare = part.replace(/^0+/, '')
    return digit.test(bare) ? bare : `0${bare}`
  })
  if (parts.length < 3 && /[+-]/.test(parts.at(-1) ?? '')) return undefined
  while (parts.length < 3) parts.push('0')
  return parts.join('.')
}

function read(text: string, normalize: boolean): SemVer | undefined {
  const whole = normalize ? normalized(text) : text
  return whole === undefined ? undefined : strictVersion(whole)
}

/**
 * A semantic version.
 * @throws Error if the text is not one.
 */
export function celVersion(text: string): SemVer {
  return versionOf(text, false)
}

function versionOf(text: string, normalize: boolean): SemVer {
  const version = read(text, normalize)
  if (version === undefined) throw new Error(`invalid semantic version: ${JSON.stringify(text)}`)
  return version
}

export function registerVersions(environment: Environment): void {
  const semver = 'kubernetes.Semver'
  environment
    .registerType(semver, SemVer)
    .registerFunction('isSemver(string): bool', (text: string) => read(text, false) !== undefined)
    .registerFunction(
      'isSemver(string, bool): bool',
      (text: string, normalize: boolean) => read(text, normalize) !== undefined,
    )
    .registerFunction(`semver(string): ${semver}`, (text: string) => versionOf(text, false))
    .registerFunction(`semver(string, bool): ${semver}`, versionOf)
    .registerFunction(`${semver}.major(): int`, (version: SemVer) => BigInt(version.major))
    .registerFunction(`${semver}.minor(): int`, (version: SemVer) => BigInt(version.minor))
    .registerFunction(`${semver}.patch(): int`, (version: SemVer) => BigInt(version.patch))
    .registerFunction(`${semver}.compareTo(${semver}): int`, (a: SemVer, b: SemVer) => BigInt(a.compare(b)))
    .registerFunction(`${semver}.isGreaterThan(${semver}): bool`, (a: SemVer, b: SemVer) => a.compare(b) > 0)
    .registerFunction(`${semver}.isLessThan(${semver}): bool`, (a: SemVer, b: SemVer) => a.compare(b) < 0)
    .registerOperator(`${semver} == ${semver}`, (a: SemVer, b: SemVer) => a.compare(b) === 0)
}
