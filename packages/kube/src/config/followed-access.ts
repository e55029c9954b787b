/** Credentials of kubeconfig files that are replaced while the process runs. */
import { statSync } from 'node:fs'
import type https from 'node:https'
import type { ClusterAccess } from './cluster-access.ts'

/**
 * A value read from files, and read again when they change. Files that are missing or invalid at present, as while they
 * are written, leave the last value in use.
 */
export class FollowedFiles<T> {
  readonly #files: readonly string[]
  readonly #read: () => T
  #value: T
  #version: string

  constructor(files: readonly string[], first: T, read: () => T) {
    this.#files = files
    this.#read = read
    this.#value = first
    this.#version = versionOf(files)
  }

  get value(): T {
    const version = versionOf(this.#files)
    if (version === this.#version) return this.#value
    try {
      this.#value = this.#read()
      this.#version = version
    } catch {
      // Tried again the next time.
    }
    return this.#value
  }
}

/** Uses the current credentials of followed files. */
export class FollowedAccess<T> implements ClusterAccess {
  readonly #followed: FollowedFiles<T>
  readonly #newAccess: (credentials: T) => ClusterAccess
  #credentials: T
  #access: ClusterAccess

  constructor(followed: FollowedFiles<T>, newAccess: (credentials: T) => ClusterAccess) {
    this.#followed = followed
    this.#newAccess = newAccess
    this.#credentials = followed.value
    this.#access = newAccess(this.#credentials)
  }

  get isProxied(): boolean {
    return this.#access.isProxied
  }

  async applyToHTTPSOptions(options: https.RequestOptions): Promise<void> {
    const { value } = this.#followed
    if (value !== this.#credentials) {
      this.#credentials = value
      this.#access = this.#newAccess(value)
    }
    await this.#access.applyToHTTPSOptions(options)
  }
}

/** Changes when a file is written or replaced, also behind a link, as in a mounted Secret. */
function versionOf(files: readonly string[]): string {
  return files
    .map((file) => {
      const stat = statSync(file, { throwIfNoEntry: false })
      return stat === undefined ? 'missing' : `${stat.ino} ${stat.size} ${stat.mtimeMs}`
    })
    .join()
}
