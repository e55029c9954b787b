/** Validation of ResourceClaims and DeviceClasses. */
import { deviceSelectorProblem } from '@tenon/cel'
import type { StoredObject } from '../../../contract.ts'
import type { Loose } from '../../columns/cells.ts'
import { jsonEqual } from '../../shape-node.ts'
import { nameErrors, templateMetadataErrors } from '../metadata.ts'
import { type Findings, listOf, textsOf } from '../reporting.ts'
import { checkDriverName } from '../volumes.ts'
import { checkItems, checkName, checkOnce, checkQualified, checkToleration } from './parts.ts'

/** Limits of the API. */
const most = { requests: 32, alternatives: 8, selectors: 32, constraints: 32, configs: 32 }
const longestExpression = 10 * 1024
const longestParameters = 10 * 1024
const extendedResource = /^(?!requests\.)[^/]+\/.+$/

/** Names of requests, each with those of its subrequests. */
type RequestNames = ReadonlyMap<string, ReadonlySet<string>>

/** Validates a claim; its spec is immutable. */
export function checkResourceClaim(
  object: StoredObject,
  old: StoredObject | undefined,
  found: Findings,
): void {
  if (old !== undefined) return found.immutable('spec', object['spec'], old['spec'], jsonEqual)
  checkClaim(devicesOf(object['spec']), 'spec.devices', found)
}

/** Validates a claim template; its spec is immutable. */
export function checkResourceClaimTemplate(
  object: StoredObject,
  old: StoredObject | undefined,
  found: Findings,
): void {
  if (old !== undefined) return found.immutable('spec', object['spec'], old['spec'], jsonEqual)
  const { metadata, spec } = (object['spec'] ?? {}) as Loose
  found.errors.push(...templateMetadataErrors(metadata as Loose | undefined, 'spec.metadata'))
  checkClaim(devicesOf(spec), 'spec.spec.devices', found)
}

/** Checks a class of devices. */
export function checkDeviceClass(
  object: StoredObject,
  _old: StoredObject | undefined,
  found: Findings,
): void {
  const spec = object['spec'] as Loose | undefined
  checkSelectors(spec, 'spec', found)
  checkItems(spec, 'config', { path: 'spec', most: most.configs, found }, (config, path) =>
    checkOpaque(config, path, found),
  )
  const name: unknown = spec?.['extendedResourceName']
  if (typeof name === 'string' && !isExtendedResource(name))
    found.invalid('spec.extendedResourceName', name, 'must be a valid extended resource name')
}

/** Whether a resource is not one of Kubernetes' own. */
function isExtendedResource(name: string): boolean {
  const domain = name.slice(0, Math.max(0, name.indexOf('/')))
  return extendedResource.test(name) && domain !== 'kubernetes.io' && !domain.endsWith('.kubernetes.io')
}

function devicesOf(spec: unknown): Loose {
  return ((spec as Loose | undefined)?.['devices'] ?? {}) as Loose
}

function checkClaim(devices: Loose, path: string, found: Findings): void {
  const requests = listOf(devices, 'requests')
  const names: RequestNames = new Map(
    requests.map((request) => [
      String(request['name']),
      new Set(listOf(request, 'firstAvailable').map(({ name }) => String(name))),
    ]),
  )
  checkItems(devices, 'requests', { path, most: most.requests, found }, (request, at) =>
    checkRequest(request, at, found),
  )
  checkOnce(
    requests.map(({ name }) => name),
    `${path}.requests`,
    found,
  )
  checkItems(devices, 'constraints', { path, most: most.constraints, found }, (constraint, at) => {
    checkReferences(constraint, names, at, found)
    checkConstraint(constraint, at, found)
  })
  checkItems(devices, 'config', { path, most: most.configs, found }, (config, at) => {
    checkReferences(config, names, at, found)
    checkOpaque(config, at, found)
  })
}

function checkRequest(request: Loose, path: string, found: Findings): void {
  checkName(request['name'], `${path}.name`, found)
  const exactly = request['exactly'] as Loose | undefined
  const ways = listOf(request, 'firstAvailable')
  const words = 'exactly one of `exactly` or `firstAvailable` is required'
  if (exactly === undefined && ways.length === 0) return found.required(path, words)
  if (exactly !== undefined && ways.length > 0)
    return found.invalid(path, null, `${words}, but multiple fields are set`)
  if (exactly !== undefined) return checkWay(exactly, `${path}.exactly`, found)
  checkItems(request, 'firstAvailable', { path, most: most.alternatives, found }, (way, at) => {
    checkName(way['name'], `${at}.name`, found)
    checkWay(way, at, found)
  })
  checkOnce(
    ways.map(({ name }) => name),
    `${path}.firstAvailable`,
    found,
  )
}

function checkWay(way: Loose, path: string, found: Findings): void {
  const { deviceClassName, allocationMode = 'ExactCount', count } = way
  if (deviceClassName === undefined || deviceClassName === '') found.required(`${path}.deviceClassName`)
  else
    for (const words of nameErrors(String(deviceClassName), 'subdomain'))
      found.invalid(`${path}.deviceClassName`, deviceClassName, words)
  checkSelectors(way, path, found)
  if (allocationMode === 'All') {
    if (typeof count === 'number' && count !== 0)
      found.invalid(`${path}.count`, count, "must not be specified when allocationMode is 'All'")
  } else if (allocationMode === 'ExactCount') {
    if (typeof count === 'number' && count <= 0)
      found.invalid(`${path}.count`, count, 'must be greater than zero')
  } else found.oneOf(`${path}.allocationMode`, allocationMode, ['All', 'ExactCount'])
  for (const [index, toleration] of listOf(way, 'tolerations').entries())
    checkToleration(toleration, `${path}.tolerations[${index}]`, found)
}

function checkSelectors(record: Loose | undefined, path: string, found: Findings): void {
  checkItems(record, 'selectors', { path, most: most.selectors, found }, (selector, at) => {
    const expression: unknown = (selector['cel'] as Loose | undefined)?.['expression']
    if (selector['cel'] === undefined) found.required(`${at}.cel`)
    else checkExpression(String(expression ?? ''), `${at}.cel.expression`, found)
  })
}

function checkExpression(text: string, path: string, found: Findings): void {
  if (text.length > longestExpression) return found.tooLong(path, longestExpression)
  const problem = deviceSelectorProblem(text)
  if (problem !== undefined) found.invalid(path, text, `compilation failed: ${problem}`)
}

/** Validates references to requests. */
function checkReferences(record: Loose, names: RequestNames, path: string, found: Findings): void {
  const requests = textsOf(record, 'requests')
  if (requests.length > most.requests)
    return found.tooMany(`${path}.requests`, requests.length, most.requests)
  for (const [index, reference] of requests.entries()) {
    const at = `${path}.requests[${index}]`
    const [name = '', way, ...rest] = reference.split('/')
    if (rest.length === 0)
      for (const part of way === undefined ? [name] : [name, way]) checkName(part, at, found)
    const ways = names.get(name)
    if (rest.length > 0 || ways === undefined || (way !== undefined && !ways.has(way)))
      found.invalid(
        at,
        reference,
        "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'",
      )
  }
  checkOnce(requests, `${path}.requests`, found)
}

function checkConstraint({ matchAttribute, distinctAttribute }: Loose, path: string, found: Findings): void {
  const attribute: unknown = matchAttribute ?? distinctAttribute
  const at = `${path}.${matchAttribute === undefined ? 'distinctAttribute' : 'matchAttribute'}`
  if (attribute === undefined)
    return found.required(path, 'exactly one of "matchAttribute" or "distinctAttribute" is required')
  checkQualified(String(attribute), at, found)
  if (!String(attribute).includes('/'))
    found.invalid(at, attribute, 'a fully qualified name must be a domain and a name separated by a slash')
}

/** Validates driver parameters, which only the driver reads. */
function checkOpaque(config: Loose, path: string, found: Findings): void {
  const opaque = config['opaque'] as Loose | undefined
  if (opaque === undefined) return found.required(`${path}.opaque`)
  checkDriverName(opaque['driver'], `${path}.opaque.driver`, found)
  const parameters: unknown = opaque['parameters']
  const at = `${path}.opaque.parameters`
  if (parameters === undefined || parameters === null) found.required(at)
  else if (JSON.stringify(parameters).length > longestParameters) found.tooLong(at, longestParameters)
  else if (typeof parameters !== 'object' || Array.isArray(parameters))
    found.invalid(at, '<value omitted>', 'must be a valid JSON object')
}
