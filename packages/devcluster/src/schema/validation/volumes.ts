import { ownValue, quantityNanos } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { checkClaimSpec } from './claims.ts'
import { checkFieldReference, checkResourceReference } from './field-references.ts'
import { dnsLabelErrors, nameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

/**
 * Validates the volumes of a pod.
 * @returns their names.
 */
export function checkVolumes(volumes: readonly Loose[], path: string, found: Findings): ReadonlySet<string> {
  const names = new Set<string>()
  for (const [index, volume] of volumes.entries()) {
    const at = `${path}[${index}]`
    const name: unknown = volume['name']
    let isSound = true
    if (typeof name === 'string' && name !== '') {
      const words = dnsLabelErrors(name)
      for (const detail of words) found.invalid(`${at}.name`, name, detail)
      if (names.has(name)) found.duplicate(`${at}.name`, name)
      isSound = words.length === 0 && !names.has(name)
    } else isSound = false
    const before = found.errors.length
    const sources = Object.keys(volume).filter((key) => key !== 'name')
    for (const extra of sources.slice(1))
      found.forbidden(`${at}.${extra}`, 'may not specify more than 1 volume type')
    const source = sources[0]
    if (source !== undefined) ownValue(checks, source)?.(ownValue(volume, source), `${at}.${source}`, found)
    if (isSound && found.errors.length === before) names.add(String(name))
  }
  return names
}

type SourceCheck = (source: Loose, path: string, found: Findings) => void

const maxFileMode = 0o777

function checkMode(mode: unknown, path: string, found: Findings): void {
  if (typeof mode === 'number' && (mode < 0 || mode > maxFileMode))
    found.invalid(path, mode, 'must be a number between 0 and 0777 (octal), both inclusive')
}

/** Whether a path is relative and does not go up. */
function checkLocalPath(value: unknown, path: string, found: Findings): void {
  if (value === undefined || value === '') return found.required(path)
  if (typeof value !== 'string') return
  if (value.startsWith('/')) found.invalid(path, value, 'must be a relative path')
  checkNoBacksteps(value, path, found)
  if (value.startsWith('..') && !value.startsWith('../'))
    found.invalid(path, value, "must not start with '..'")
}

/** Refuses paths with `..`. */
export function checkNoBacksteps(value: string, path: string, found: Findings): void {
  if (value.split('/').includes('..')) found.invalid(path, value, "must not contain '..'")
}

function checkItems(source: Loose, path: string, found: Findings): void {
  for (const [index, { key, path: file, mode }] of listOf(source, 'items').entries()) {
    const at = `${path}.items[${index}]`
    if (key === undefined || key === '') found.required(`${at}.key`)
    checkLocalPath(file, `${at}.path`, found)
    checkMode(mode, `${at}.mode`, found)
  }
}

function checkDownward(source: Loose, path: string, found: Findings): void {
  for (const { path: file, fieldRef, resourceFieldRef, mode } of listOf(source, 'items')) {
    // Reported without the index of the item.
    if (file === undefined || file === '') found.required(`${path}.path`)
    else checkLocalPath(file, `${path}.path`, found)
    if (fieldRef !== undefined) {
      checkFieldReference(fieldRef, 'volume', `${path}.fieldRef`, found)
      if (resourceFieldRef !== undefined)
        found.invalid(path, 'resource', 'fieldRef and resourceFieldRef can not be specified simultaneously')
    } else if (resourceFieldRef !== undefined) {
      checkResourceReference(resourceFieldRef, true, `${path}.resourceFieldRef`, found)
    } else found.required(path, 'one of fieldRef and resourceFieldRef is required')
    checkMode(mode, `${path}.mode`, found)
  }
}

const required =
  (...fields: readonly string[]): SourceCheck =>
  (source, path, found) => {
    for (const field of fields) {
      const value: unknown = ownValue(source, field)
      if (value === undefined || value === '') found.required(`${path}.${field}`)
    }
  }

const hostPathTypes = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
]

const checkHostPath: SourceCheck = (source, path, found) => {
  const { path: folder, type } = source
  if (folder === undefined || folder === '') found.required(`${path}.path`)
  else if (typeof folder === 'string') checkNoBacksteps(folder, `${path}.path`, found)
  found.oneOf(`${path}.type`, type, hostPathTypes)
}

const checkNfs: SourceCheck = (source, path, found) => {
  required('server', 'path')(source, path, found)
  const folder: unknown = source['path']
  if (typeof folder === 'string' && folder !== '' && !folder.startsWith('/'))
    found.invalid(`${path}.path`, folder, 'must be an absolute path')
}

/** Checks the name of a CSI driver. */
export function checkDriverName(name: unknown, path: string, found: Findings): void {
  if (name === undefined || name === '') return found.required(path)
  if (typeof name !== 'string') return
  if (name.length > 63) found.tooLong(path, 63)
  for (const words of nameErrors(name.toLowerCase(), 'subdomain')) found.invalid(path, name, words)
}

const checkCsi: SourceCheck = (source, path, found) => {
  checkDriverName(source['driver'], `${path}.driver`, found)
  const reference: Loose | undefined = source['nodePublishSecretRef']
  if (reference !== undefined && !reference['name']) found.required(`${path}.nodePublishSecretRef.name`)
}

const checkClaimSource: SourceCheck = (source, path, found) => {
  const name: unknown = source['claimName']
  if (name === undefined || name === '') found.required(`${path}.claimName`)
}

const checkEphemeral: SourceCheck = (source, path, found) => {
  const template: Loose | undefined = source['volumeClaimTemplate']
  if (template === undefined) return found.required(`${path}.volumeClaimTemplate`)
  checkClaimSpec(template['spec'] ?? {}, `${path}.volumeClaimTemplate.spec`, found)
}

const checkEmptyDir: SourceCheck = (source, path, found) => {
  const limit: unknown = source['sizeLimit']
  if (typeof limit === 'string' && (quantityNanos(limit) ?? 0n) < 0n)
    found.forbidden(`${path}.sizeLimit`, 'SizeLimit field must be a valid resource quantity')
}

const projections = [
  'secret',
  'configMap',
  'downwardAPI',
  'serviceAccountToken',
  'clusterTrustBundle',
  'podCertificate',
]

const checkProjected: SourceCheck = (source, path, found) => {
  checkMode(source['defaultMode'], `${path}.defaultMode`, found)
  const paths = new Set<unknown>()
  const claim = (file: unknown): void => {
    if (typeof file !== 'string' || file === '') return
    if (paths.has(file)) found.invalid(path, file, 'conflicting duplicate paths')
    paths.add(file)
  }
  for (const [index, projection] of listOf(source, 'sources').entries()) {
    const at = `${path}.sources[${index}]`
    const given = projections.filter((key) => ownValue(projection, key) !== undefined)
    for (const extra of given.slice(1))
      found.forbidden(`${at}.${extra}`, 'may not specify more than 1 volume type per source')
    for (const kind of ['secret', 'configMap'] as const) {
      const files: Loose | undefined = projection[kind]
      if (files === undefined) continue
      if (!files['name']) found.required(`${at}.${kind}.name`)
      checkItems(files, `${at}.${kind}`, found)
      for (const item of listOf(files, 'items')) claim(item['path'])
    }
    const downward: Loose | undefined = projection['downwardAPI']
    if (downward !== undefined) {
      checkDownward(downward, `${at}.downwardAPI`, found)
      for (const item of listOf(downward, 'items')) claim(item['path'])
    }
    const token: Loose | undefined = projection['serviceAccountToken']
    if (token !== undefined) {
      checkToken(token, `${at}.serviceAccountToken`, found)
    }
  }
}

const shortestTokenSeconds = 600

function checkToken(token: Loose, path: string, found: Findings): void {
  const seconds: unknown = token['expirationSeconds']
  if (typeof seconds === 'number' && seconds < shortestTokenSeconds)
    found.invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration less than 10 minutes')
  if (typeof seconds === 'number' && seconds > 2 ** 32)
    found.invalid(`${path}.expirationSeconds`, seconds, 'may not specify a duration larger than 2^32 seconds')
  checkLocalPath(token['path'], `${path}.path`, found)
}

const checks: Readonly<Record<string, SourceCheck>> = {
  emptyDir: checkEmptyDir,
  secret: (source, path, found) => {
    if (!source['secretName']) found.required(`${path}.secretName`)
    checkMode(source['defaultMode'], `${path}.defaultMode`, found)
    checkItems(source, path, found)
  },
  configMap: (source, path, found) => {
    if (!source['name']) found.required(`${path}.name`)
    checkMode(source['defaultMode'], `${path}.defaultMode`, found)
    checkItems(source, path, found)
  },
  downwardAPI: (source, path, found) => {
    checkMode(source['defaultMode'], `${path}.defaultMode`, found)
    checkDownward(source, path, found)
  },
  projected: checkProjected,
  hostPath: checkHostPath,
  nfs: checkNfs,
  csi: checkCsi,
  persistentVolumeClaim: checkClaimSource,
  ephemeral: checkEphemeral,
  image: (source, path, found) => {
    found.oneOf(`${path}.pullPolicy`, source['pullPolicy'], ['Always', 'IfNotPresent', 'Never'])
  },
  gcePersistentDisk: required('pdName'),
  awsElasticBlockStore: required('volumeID'),
  azureDisk: required('diskName', 'diskURI'),
}

/** Validates volume sources of pods and PersistentVolumes. */
export function checkVolumeSource(source: string, value: Loose, path: string, found: Findings): void {
  if (source !== 'csi') ownValue(checks, source)?.(value, path, found)
}
