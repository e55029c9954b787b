import { quantityNanos } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { qualifiedNameErrors } from './metadata.ts'
import type { Findings } from './reporting.ts'

const environmentFields = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
]

const volumeFields = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
]

const subscripted = /^(metadata\.(?:annotations|labels))\['(.*)'\]$/

/** Validates a reference to a field of the pod, in a variable or file. */
export function checkFieldReference(
  reference: Loose,
  place: 'environment' | 'volume',
  path: string,
  found: Findings,
): void {
  const { apiVersion, fieldPath } = reference
  if (apiVersion === undefined || apiVersion === '') return found.required(`${path}.apiVersion`)
  if (fieldPath === undefined || fieldPath === '') return found.required(`${path}.fieldPath`)
  if (typeof fieldPath !== 'string') return
  const [, map, key] = subscripted.exec(fieldPath) ?? []
  if (map !== undefined && key !== undefined) {
    const name = map === 'metadata.annotations' ? key.toLowerCase() : key
    for (const words of qualifiedNameErrors(name)) found.invalid(path, key, words)
    return
  }
  const all = [...environmentFields, ...volumeFields]
  if (apiVersion !== 'v1' || !all.includes(fieldPath)) {
    found.invalid(`${path}.fieldPath`, fieldPath, 'error converting fieldPath: field label not supported')
    return
  }
  found.oneOf(`${path}.fieldPath`, fieldPath, place === 'environment' ? environmentFields : volumeFields)
}

const resources = ['cpu', 'ephemeral-storage', 'memory'].flatMap((name) => [
  `limits.${name}`,
  `requests.${name}`,
])

const divisors = {
  cpu: ['1m', '1'],
  bytes: ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'],
}

/** Validates a reference to a request or limit of a container, which files must name. */
export function checkResourceReference(
  reference: Loose,
  isFile: boolean,
  path: string,
  found: Findings,
): void {
  const { containerName, resource, divisor } = reference
  if (isFile && (containerName === undefined || containerName === '')) {
    return found.required(`${path}.containerName`)
  }
  if (resource === undefined || resource === '') return found.required(`${path}.resource`)
  if (typeof resource !== 'string') return
  const pages = /^(?:limits|requests)\.hugepages-/.test(resource)
  if (!pages && !resources.includes(resource)) return found.oneOf(`${path}.resource`, resource, resources)
  const amount = typeof divisor === 'string' ? quantityNanos(divisor) : undefined
  if (amount === undefined || amount === 0n) return
  const allowed = resource.endsWith('.cpu') ? divisors.cpu : divisors.bytes
  if (!allowed.some((each) => quantityNanos(each) === amount)) {
    const words = `only divisor's values ${allowed.join(', ')} are supported with the ${resource} resource`
    found.invalid(`${path}.divisor`, resource, words)
  }
}
