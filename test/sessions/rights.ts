// The rights of a Redis user that docs/run/redis.md documents.
import { readText } from '../helpers/repository.js'

const [, line = ''] = /```\n(user auth on >.*)\n```/.exec(readText('docs/run/redis.md')) ?? []

/** The words of the documented ACL line: `user`, the name, `on`, the password, and the rights. */
export const documentedUser: readonly string[] = line.split(' ')
export const documentedRights: readonly string[] = documentedUser.slice(4)

const [, cluster = ''] = /In a cluster, the user also needs\s`(.*?)`/.exec(readText('docs/run/redis.md')) ?? []

/** The additional rights for a cluster. */
export const clusterRights: readonly string[] = cluster.split(' ')
