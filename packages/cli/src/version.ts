import { arch, version as runtime } from 'node:process'
import type { BuildInfo } from '@tenon/operator'
import manifest from '../../../package.json' with { type: 'json' }

/** Version of this program and of every package that is published with it. */
export const version: string = manifest.version

/** Labels of the build metric; the architecture is named as in Go. */
export const build: BuildInfo = {
  version,
  runtime,
  arch: arch === 'x64' ? 'amd64' : arch,
  commit: '',
}
