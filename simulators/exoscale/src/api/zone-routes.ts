import { rfc3339 } from '@tenon/runtime'
import type { Call, Route } from './call.ts'
import { type InstanceType, instanceTypes, zoneNames } from '../zone/catalogue.ts'
import type { CloudContext, CloudState } from '../zone/cloud-state.ts'
import type { Template } from '../instances/instance.ts'
import type { Operations } from '../instances/operations.ts'
import { isAuthorized } from '../zone/quotas.ts'
import { invalid, notFound, refused } from './refusal.ts'

/** Zones, instance types, templates, versions, and operations. */
export function zoneRoutes(context: CloudContext, operations: Operations): Route[] {
  const { state } = context
  return [
    {
      operation: 'list-zones',
      method: 'GET',
      path: '/zone',
      handle: () => ({ zones: zoneNames.map((name) => zoneView(state, name)) }),
    },
    {
      operation: 'list-instance-types',
      method: 'GET',
      path: '/instance-type',
      handle: () => ({ 'instance-types': instanceTypes.map((type) => typeView(context, type)) }),
    },
    {
      operation: 'get-instance-type',
      method: 'GET',
      path: '/instance-type/{id}',
      handle: (call) => getInstanceType(context, call),
    },
    {
      operation: 'list-templates',
      method: 'GET',
      path: '/template',
      handle: (call) => ({ templates: listTemplates(state, call) }),
    },
    {
      operation: 'get-template',
      method: 'GET',
      path: '/template/{id}',
      handle: (call) => getTemplate(state, call),
    },
    {
      operation: 'get-active-nodepool-template',
      method: 'GET',
      path: '/sks-template/{kube-version}/{variant}',
      handle: (call) => activeTemplate(state, call),
    },
    {
      operation: 'list-sks-cluster-versions',
      method: 'GET',
      path: '/sks-cluster-version',
      handle: (call) => ({ 'sks-cluster-versions': clusterVersions(state, call) }),
    },
    {
      operation: 'get-operation',
      method: 'GET',
      path: '/operation/{id}',
      handle: (call) => operations.get(call.parameters['id'] ?? ''),
    },
  ]
}

/**
 * All addresses belong to this simulation, where other zones and object storage return 404; never to the real ones.
 */
function zoneView({ baseUrl, zone }: CloudState, name: string) {
  const root = baseUrl.replace(/\/v2$/, '')
  return {
    name,
    'api-endpoint': name === zone ? baseUrl : `${root}/zone/${name}/v2`,
    'sos-endpoint': `${root}/sos/${name}`,
  }
}

function typeView({ settings }: CloudContext, type: InstanceType) {
  return {
    id: type.id,
    family: type.family,
    size: type.size,
    cpus: type.cpus,
    memory: type.memoryBytes,
    ...(type.gpus > 0 ? { gpus: type.gpus } : {}),
    authorized: isAuthorized(settings, type),
    zones: type.zones,
  }
}

function getInstanceType(context: CloudContext, call: Call) {
  const id = call.parameters['id'] ?? ''
  const type = instanceTypes.find((known) => known.id === id)
  if (type === undefined) throw notFound('instance-type', id)
  return typeView(context, type)
}

/** All templates are public, and so listed unless private ones are requested. */
function listTemplates(state: CloudState, call: Call) {
  const visibility = call.query.get('visibility') ?? 'public'
  if (visibility !== 'public' && visibility !== 'private') {
    throw invalid(['visibility must be one of private, public'])
  }
  const family = call.query.get('family')
  return [...state.templates.values()]
    .filter(() => visibility === 'public' && (family === null || family === templateFamily))
    .map(templateView)
}

const templateFamily = 'Exoscale SKS'

function templateView(template: Template) {
  return {
    id: template.id,
    name: template.name,
    description: `SKS node image for Kubernetes ${template.version}, variant ${template.variant}`,
    family: templateFamily,
    version: template.version,
    build: rfc3339(template.createdAtMs).slice(0, 10),
    size: 10 * 2 ** 30,
    'boot-mode': 'uefi',
    'default-user': 'root',
    'ssh-key-enabled': true,
    'password-enabled': false,
    visibility: 'public',
    'created-at': rfc3339(template.createdAtMs),
  }
}

function getTemplate(state: CloudState, call: Call) {
  const id = call.parameters['id'] ?? ''
  const template = state.templates.get(id)
  if (template === undefined) throw notFound('template', id)
  return templateView(template)
}

function activeTemplate(state: CloudState, call: Call) {
  const version = call.parameters['kube-version'] ?? ''
  const variant = call.parameters['variant'] ?? ''
  if (variant !== 'standard' && variant !== 'nvidia') {
    throw invalid(['variant must be one of standard, nvidia'])
  }
  const id = state.activeTemplates.get(`${version}/${variant}`)
  if (id === undefined) throw refused(404, `no ${variant} template for Kubernetes ${version}`)
  return { 'active-template': id }
}

/** Newest first: the last patch version of each minor version, or all of them. */
function clusterVersions(state: CloudState, call: Call): string[] {
  const known = newestFirst([...state.templates.values()].map((template) => template.version))
  if (call.query.get('include-deprecated') === 'true') return known
  const minors = new Set<string>()
  return known.filter((version) => {
    const minor = version.slice(0, version.lastIndexOf('.'))
    const isLatest = !minors.has(minor)
    minors.add(minor)
    return isLatest || version === state.cluster.version
  })
}

/** Distinct Kubernetes versions (`1.34.1`), newest first. */
function newestFirst(versions: readonly string[]): string[] {
  return [...new Set(versions)].sort((a, b) => compareVersions(b, a))
}

function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number)
  const right = b.split('.').map(Number)
  for (let index = 0; index < 3; index++) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
