import type { Texts } from './texts.js'

/** The texts of the pages in Chinese, in simplified characters. */
export const zh: Texts = {
  actions: {
    signIn: '登录',
    signInAgain: '重新登录',
    home: '前往首页'
  },
  details: {
    intro: '如需帮助，请提供以下信息：',
    error: '错误 {{code}}：{{description}}',
    errorCode: '错误 {{code}}',
    request: '请求 {{id}}'
  },
  notSignedIn: {
    title: '您尚未登录',
    happened: '登录后才能访问此页面。您没有会话，或者会话已结束。',
    next: '请登录以继续。'
  },
  accountNotAllowed: {
    title: '您的账号无权登录此应用',
    happened: '登录已成功，但此应用只允许名单中的账号使用。您的账号不在名单中，或者其电子邮箱尚未验证。',
    next: '如果您有其他账号，请使用该账号登录。否则，请向此应用的管理员申请访问权限。'
  },
  sessionTooLarge: {
    title: '您的会话过大',
    happened: '登录已成功，但您的账号数据超出了会话允许的大小，因此此应用无法保存您的会话。',
    next: '重试不会有帮助。请告知此应用的管理员，应用需要减少所请求的访问权限。'
  },
  loginNotCompleted: {
    title: '无法完成此次登录',
    happened: '从登录页面返回的链接已过期、已被使用过，或者属于另一个浏览器或隐私窗口。',
    next: '请重新登录。如果每次都回到此页面，请允许此网站使用 Cookie，并关闭此网站的旧标签页。'
  },
  accessNotGranted: {
    title: '未获得访问授权',
    happened: '登录页面报告访问被拒绝，或者登录已取消。',
    next: '如果这不是您的本意，请重新登录并允许访问。如果登录时没有询问您是否授权，您的账号可能无权使用此应用。请联系此应用的管理员。'
  },
  otherSite: {
    title: '此请求来自其他网站',
    happened: '另一个网站试图使用您在此处的会话。该请求已被拒绝，未做任何更改。',
    next: '如果这是您本人的操作，请直接打开应用，然后在应用中重试。'
  },
  notFound: {
    title: '找不到页面',
    happened: '此地址没有任何内容。',
    next: '请检查地址是否输入有误，或前往首页。'
  },
  methodNotAllowed: {
    title: '不能以这种方式使用此地址',
    happened: '某个表单或程序向此地址发送了数据，但此地址不接收数据。',
    next: '请从首页重新开始。'
  },
  requestTooLarge: {
    title: '请求过大',
    happened: '请求的大小超出了此服务器的限制。',
    next: '请从首页重新开始。如果再次出现此错误，请清除此网站的 Cookie。'
  },
  invalidRequest: {
    title: '操作未成功',
    happened: '服务器无法理解此请求。',
    next: '请检查地址是否输入有误，或从首页重新开始。'
  },
  serverError: {
    title: '我们这边出现了问题',
    happened: '服务器发生了意外错误。这不是您造成的。',
    next: '请重试。如果问题持续存在，请告知此应用的管理员。'
  },
  providerError: {
    title: '登录服务出现问题',
    happened: '管理您账号的服务返回了错误，或者返回了此服务器无法使用的数据。',
    next: '请重新登录。如果再次失败，请告知此应用的管理员。'
  },
  providerUnavailable: {
    title: '请稍后重试',
    happened: '登录服务暂时不可用。如果您之前已登录，登录状态不受影响。',
    next: '请等待几秒钟，然后重试。'
  },
  providerSlow: {
    title: '登录服务响应时间过长',
    happened: '管理您账号的服务未能及时响应。如果您之前已登录，登录状态不受影响。',
    next: '请稍候片刻，然后重新登录。'
  },
  providerUnreachable: {
    title: '无法连接到登录服务',
    happened: '此服务器无法连接到管理您账号的服务。如果您之前已登录，登录状态不受影响。',
    next: '请稍候片刻，然后重新登录。如果问题持续存在，请告知此应用的管理员。'
  },
  busy: {
    title: '服务繁忙',
    happened: '登录服务暂时无法响应。如果您之前已登录，登录状态不受影响。',
    next: '此页面将在{{when}}自动重试。您无需进行任何操作。'
  },
  loginLoop: {
    title: '您已登录，但浏览器未能保持登录状态',
    happened: '登录已成功，但您的浏览器没有发回此网站保持登录状态所需的 Cookie。因此，下一个页面会再次要求您登录。',
    reason: '可能的原因',
    reasons: '可能的原因',
    secureCookieOnHttp:
      '您可能通过未加密的 http 打开了此网站，但浏览器只会通过 https 保存此 Cookie。请改为打开 {{address}}。',
    otherHost:
      '登录后会返回 {{host}}，但您可能是通过其他主机名打开此网站的。浏览器会为每个主机名分别保存 Cookie。请改为打开 {{address}}。',
    otherName:
      '您打开的是 {{startedAt}}，但登录后会返回 {{host}}。这两个名称都指向这台计算机，但浏览器会为每个名称分别保存 Cookie。请改为打开 {{address}}。',
    cookiesBlocked:
      '浏览器阻止了此网站的 Cookie。请在浏览器设置中允许 Cookie，并检查您的隐私保护扩展程序。如果此页面显示在其他网站内，浏览器通常会阻止其 Cookie。',
    cookieTooLarge:
      '您的账号数据超出了浏览器或此服务器前面的代理所能接受的 Cookie 大小。请告知此应用的管理员，应用需要减少所请求的访问权限。'
  }
}
