import type { TableColumn } from '../../contract.ts'
import { ageColumn, column, type Loose, nameColumn, orElse } from './cells.ts'

const roleLabel = 'node-role.kubernetes.io/'

function status(node: Loose): string {
  const ready = (node['status']?.conditions ?? []).find((one: Loose) => one['type'] === 'Ready')
  const words = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady']
  if (node['spec']?.unschedulable === true) words.push('SchedulingDisabled')
  return words.join(',')
}

function roles(node: Loose): string {
  const found = new Set<string>()
  for (const [key, value] of Object.entries(node['metadata']?.labels ?? {})) {
    if (key.startsWith(roleLabel) && key.length > roleLabel.length) found.add(key.slice(roleLabel.length))
    else if (key === 'kubernetes.io/role' && value !== '') found.add(String(value))
  }
  return found.size === 0 ? '<none>' : [...found].sort().join(',')
}

function address(type: string): (node: Loose) => string {
  return (node) =>
    orElse((node['status']?.addresses ?? []).find((one: Loose) => one['type'] === type)?.address, '<none>')
}

function info(field: string): (node: Loose) => string {
  return (node) => orElse(node['status']?.nodeInfo?.[field], '<unknown>')
}

export const nodeColumns: readonly TableColumn[] = [
  nameColumn,
  column('Status', 'string', status),
  column('Roles', 'string', roles),
  ageColumn,
  column('Version', 'string', (node) => orElse(node['status']?.nodeInfo?.kubeletVersion, '')),
  column('Internal-IP', 'string', address('InternalIP'), 1),
  column('External-IP', 'string', address('ExternalIP'), 1),
  column('OS-Image', 'string', info('osImage'), 1),
  column('Kernel-Version', 'string', info('kernelVersion'), 1),
  column('Container-Runtime', 'string', info('containerRuntimeVersion'), 1),
]
